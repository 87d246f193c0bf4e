"""As wait_sync.py: asyncio.run cancels the task when it is interrupted. With a
client of the lock's own."""
import asyncio
import json
import sys

from redlockd import AsyncLock


async def main() -> None:
    options = json.loads(sys.argv[2])
    names = options.pop("resources")
    async with AsyncLock(*names, urls=sys.argv[1], ttl=4, **options):
        print("granted")


asyncio.run(main())

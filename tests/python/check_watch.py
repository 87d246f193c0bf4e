"""Who holds a lock, and who holds it next."""
from __future__ import annotations

import asyncio
import json
import unittest
from itertools import islice

import check_live
from fake import WithFake, page
from processes import end
from redlockd import (AsyncClient, AsyncLock, Client, HeldLock, Lock)
from redlockd._ops import lock_id

def lock(**fields):
    """The answer about a lock."""
    return page(200, json.dumps({"id": "a", "resource": "a", "waiters": 0,
                                 **fields}))


def held(version, **fields):
    return lock(held=True, version=version, **fields)


FREE = lock(held=False, version="free")


def owners(seen: list[HeldLock | None]) -> list[str | None]:
    return [one.owner if one else None for one in seen]


class Watches(WithFake, unittest.IsolatedAsyncioTestCase):
    async def test_each_change_is_told_once(self):
        fake = self.fake()
        answers = (FREE, FREE, held("7", fencing_token=7, owner="one"),
                   held("8", fencing_token=8, owner="two"), FREE)
        asked = ["", "?after=free&wait_ms=10000", "?after=free&wait_ms=10000",
                 "?after=7&wait_ms=10000", "?after=8&wait_ms=10000"]
        fake.on("GET", *answers, *answers)
        with Client(fake.url) as client:
            seen = list(islice(client.watch("a"), 4))
        self.assertEqual(owners(seen), [None, "one", "two", None])
        async with AsyncClient(fake.url) as other:
            seen = []
            async for holder in other.watch("a"):
                seen.append(holder)
                if len(seen) == 4:
                    break
        self.assertEqual(owners(seen), [None, "one", "two", None])
        self.assertEqual([one.path for one in fake.requests],
                         ["/locks/a" + query for query in asked * 2])

    def test_a_resource_is_named_by_its_id(self):
        # as tests/unit/api/check_id.c has them
        for resource, name in (("order:42", "order:42"), ("a/b", "~YS9i"),
                               ("..", "~Li4"), ("~a", "~fmE"),
                               ("ü", "~w7w")):
            self.assertEqual(lock_id(resource), name)


class Live(check_live.Case):
    async def test_changes_through_either_server(self):
        seen: list[str | None] = []

        async def watch() -> None:
            async with AsyncClient(self.urls) as client:
                async for holder in client.watch("watched/é"):
                    seen.append(holder.owner if holder else None)

        task = asyncio.ensure_future(watch())
        for number in range(4):
            urls = self.urls[number % 2:][:1]
            async with AsyncLock("watched/é", ttl=4, owner=f"o{number}",
                                 urls=urls):
                await self.wait_for(seen, f"o{number}")
            await self.wait_for(seen, None)
        task.cancel()
        self.assertEqual(seen[-8:], ["o0", None, "o1", None, "o2", None, "o3",
                                     None])

    async def wait_for(self, seen, owner):
        for _ in range(2000):
            if seen and seen[-1] == owner:
                return
            await asyncio.sleep(0.01)
        self.fail(f"{owner} was not seen: {seen}")

    def test_a_server_that_is_killed_is_replaced(self):
        server, urls = self.short_lived_server()
        with Client(urls) as client:
            watch = client.watch("kill:1")
            self.assertIsNone(next(watch))
            end(server.process)
            with Lock("kill:1", owner="next", urls=self.urls):
                self.assertEqual(next(watch).owner, "next")
            self.assertIsNone(next(watch))

# SPDX-License-Identifier: MIT
"""Who holds a lock, and who holds it next."""
from __future__ import annotations

import asyncio
import unittest

import check_live
from fake import WithFake
from processes import end
from redlockd import AsyncClient, AsyncLock, Client, Lock
from redlockd._ops import lock_id


class Watches(WithFake, unittest.IsolatedAsyncioTestCase):
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

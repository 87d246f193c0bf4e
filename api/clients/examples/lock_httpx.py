"""A lock of redlockd for asyncio, with httpx; Python 3.11 on Linux."""
import asyncio, contextlib, functools, os, random, sys, time, uuid
import httpx
now = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)
BEARER = os.environ.get("REDLOCKD_AUTH_TOKEN")  # our token, if redlockd wants one

class LockLost(Exception): """Stop work: somebody else may hold the lock."""

class Lock:
    def __init__(self, urls, resource, ttl_ms=30000, wait_ms=60000):
        self.urls, self.resource = list(urls), resource
        self.ttl_ms, self.wait_s = ttl_ms, wait_ms / 1000
        auth = {"Authorization": f"Bearer {BEARER}"} if BEARER else {}
        self.head = {"Idempotency-Key": str(uuid.uuid4()), **auth}

    async def hold(self, work):
        """Returns what work(lock) does. A loss cancels it, and raises LockLost."""
        async with httpx.AsyncClient(headers=self.head) as self.http:
            grant = await self.acquire(now() + self.wait_s)
            path, token = f"/locks/{grant['id']}", grant["token"]
            renewal = self.renew(f"{path}/extend", token=token, ttl_ms=self.ttl_ms)
            worker, renewer = map(asyncio.create_task, (work(self), renewal))
            try:
                await asyncio.wait((worker, renewer), return_when="FIRST_COMPLETED")
            finally:
                renewer.cancel()
                worker.cancel() and await asyncio.wait([worker])
                await self.ask("DELETE", path, 2, token=token)
        if worker.cancelled():
            raise renewer.exception() or LockLost
        return worker.result()

    def check(self):  # call it right before each step that cannot be undone
        if (left_s := self.until - self.ttl_ms / 10000 - now()) <= 0:
            raise LockLost
        return left_s

    async def acquire(self, deadline):
        while True:
            wait_s = min(max(deadline - now(), 0), 10)
            want = dict(resource=self.resource, ttl_ms=self.ttl_ms, wait_ms=int(wait_s * 1000))
            status, answer = await self.ask("POST", "/locks", wait_s + 2, **want)
            if status in (200, 201):
                return answer
            if status not in (409, 503) or now() > deadline:
                wrong = TimeoutError if status in (409, 503) else ValueError
                raise wrong(f"{self.resource}: {status} {answer}")
            if status == 503:
                await asyncio.sleep(random.uniform(0.2, 1) + answer.get("retry_after_ms", 0) / 1000)

    async def renew(self, path, **want):
        answer = {}
        while answer.get("code") not in ("lock_not_found", "not_owner"):
            await asyncio.sleep(min(self.pause_s, self.check()))
            self.pause_s = self.ttl_ms / 20000  # unless this succeeds
            _, answer = await self.ask("PUT", path, self.check() / len(self.urls) / 2, **want)

    async def ask(self, method, path, limit_s, **body):
        for _ in self.urls:  # until a replica can answer
            sent, url, got = now(), self.urls[0] + path, {}
            with contextlib.suppress(httpx.HTTPError, ValueError):
                answer = await self.http.request(method, url, json=body, timeout=limit_s)
                got = answer.json()
                if "validity_ms" in got:
                    self.until = sent + (got["elapsed_ms"] + got["validity_ms"]) / 1000
                    self.pause_s, self.fence = got["renew_after_ms"] / 1000, got["fencing_token"]
                if answer.status_code < 429:
                    return answer.status_code, got
            self.urls.append(self.urls.pop(0))
        return 503, got

async def work(lock):
    for _ in range(int(sys.argv[4]) // 50):
        await asyncio.sleep(0.05)
        lock.check()
        print("working", time.time_ns() // 10**6, lock.fence, flush=True)

if __name__ == "__main__":
    lock = Lock(os.environ["URLS"].split(), sys.argv[1], *map(int, sys.argv[2:4]))
    asyncio.run(lock.hold(work))

# SPDX-License-Identifier: MIT
"""The programs of docs/guide.md: a store, and what writes to it under a lock.
Each story takes a Shop and what starts the program."""
import contextlib
import datetime
import http.client
import os
import pathlib
import re
import signal
import sys
import threading

from jobs import Job
from nodes import HOST
from ports import free_ports
from program import Lines, now_ms
from stage import RENEWAL_MS, TTL_MS, Stage
from waiting import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDE = ROOT / "api/clients/examples/guide"
BUILD = ROOT / "build/examples"  # what run.sh has prepared
STEP_MS = 300  # how long the store takes to write
REDLOCKCTL = pathlib.Path(os.environ["REDLOCKD"]).resolve().parent / "redlockctl"

VENV = BUILD / "python/venv/bin/python3"
RUBY = "ruby", "-I", ROOT / "api/clients/ruby/lib"
JAVA = ("java", "-XX:TieredStopAtLevel=1",  # starts in half the time
        "-cp", BUILD / "java")
PROGRAMS = {
    "web.py": (VENV, GUIDE / "web.py"),
    "web.mjs": ("node", BUILD / "web.mjs"),
    "web.php": ("php", GUIDE / "web.php"),
    "web.rb": (*RUBY, GUIDE / "web.rb"),
    "web.java": (*JAVA, GUIDE / "web.java"),
    "report.py": (VENV, GUIDE / "report.py"),
    "report.sh": (REDLOCKCTL, "run", "-n", "-E", "0", "-t", str(TTL_MS / 1000),
                  "report", "--", GUIDE / "report.sh"),
    "report.php": ("php", GUIDE / "report.php"),
    "report.rb": (*RUBY, GUIDE / "report.rb"),
    "report.java": (*JAVA, GUIDE / "report.java"),
    "worker.py": (VENV, GUIDE / "worker.py"),
    "worker.go": (BUILD / "worker",),
    "worker.php": ("php", GUIDE / "worker.php"),
    "worker.rb": (*RUBY, GUIDE / "worker.rb"),
    "worker.java": (*JAVA, GUIDE / "worker.java"),
    "leader.py": (VENV, GUIDE / "leader.py"),
    "leader.mjs": ("node", BUILD / "leader.mjs"),
    "leader.php": ("php", GUIDE / "leader.php"),
    "leader.rb": (*RUBY, GUIDE / "leader.rb"),
    "leader.java": (*JAVA, GUIDE / "leader.java"),
}


class Shop(Stage):
    """Five nodes, two servers, a store, and the program under test."""

    def __init__(self, command):
        super().__init__(command)
        self.step_ms = STEP_MS

    def __enter__(self):
        super().__enter__()
        [self.store_port] = free_ports(1)
        self.store = self.spawn(
            [sys.executable, GUIDE / "store.py", self.store_port,
             self.folder / "store.db"], STEP_S=str(self.step_ms / 1000))
        wait_until(lambda: self.look("/orders/") == "", "the store serves", 10)
        return self

    def spawn(self, command, **variables):
        lines = Lines(command, **variables)
        self.programs.append(lines)
        return lines

    def begin(self, *arguments):
        """The program."""
        self.program = self.spawn(
            [*self.command, *arguments], REDLOCKD_URL=",".join(self.urls),
            STORE=f"http://{HOST}:{self.store_port}", PYTHONUNBUFFERED="1",
            REDLOCKD_PHP=str(ROOT / "api/clients/php/autoload.php"),
            LOCK_TTL_S=str(TTL_MS / 1000))
        return self.program

    # -- the store

    def ask_store(self, method, path, body=None, **headers):
        link = http.client.HTTPConnection(HOST, self.store_port, timeout=10)
        try:
            link.request(method, path, body, headers)
            answer = link.getresponse()
            return answer.status, answer.read().decode()
        except ConnectionRefusedError:
            return 0, None
        finally:
            link.close()

    def look(self, path):
        return self.ask_store("GET", path)[1]

    def put(self, path, state, number=0):
        return self.ask_store("PUT", path, state,
                              **{"X-Fencing-Token": str(number)})[0]

    def writes(self, path=""):
        """[(path, state, number, status, moment in ms)], without our own."""
        found = [re.fullmatch(r"PUT (\S+) (.*) (\d+) (\d+) (\d+)", line)
                 for line in list(self.store.lines)]
        assert all(found), self.store.lines
        return [(write[1], write[2], *map(int, write.group(3, 4, 5)))
                for write in found
                if write[3] != "0" and write[1].startswith(path)]

    def writes_of(self, number, path=""):
        return [write for write in self.writes(path) if write[2] == number]

    def has_written(self, path, count=1):
        wait_until(lambda: len(self.writes(path)) >= count,
                   f"{count} writes to {path}: {self.program.lines[-5:]}",
                   30)  # a JVM starts slowly on a busy machine
        return self.writes(path)

    # -- the lock

    def holder(self, resource):
        status, answer = self.ask("GET", f"/locks/{resource}")
        return answer if status == 200 else {}

    def force_release(self, resource):
        """As an operator does; another client takes the lock at once."""
        number = self.holder(resource)["fencing_token"]
        status, answer = self.ask("DELETE", f"/locks/{resource}?force={number}")
        assert status == 200, answer
        return self.rival_takes(resource)

    def rival_takes(self, resource):
        def try_it():
            status, self.grant = self.ask("POST", "/locks", {
                "resource": resource, "ttl_ms": 4000})
            return status == 201
        wait_until(try_it, "the rival gets the lock", 10)
        return self.grant["fencing_token"], now_ms()

    @contextlib.contextmanager
    def rival_stays(self, resource):
        """It keeps the lock, however slowly the program starts; then it leaves."""
        self.rival_takes(resource)
        is_over = threading.Event()

        def extend():
            while not is_over.wait(RENEWAL_MS / 1000):
                status, answer = self.ask(
                    "PUT", f"/locks/{self.grant['id']}/extend",
                    {"token": self.grant["token"], "ttl_ms": 4000})
                assert status == 200, answer
        extending = Job(extend)
        extending.start()
        try:
            yield self.grant["fencing_token"]
        finally:
            is_over.set()
            extending.join()
        self.rival_leaves()

    def rival_leaves(self):
        status, answer = self.ask("DELETE", f"/locks/{self.grant['id']}",
                                  {"token": self.grant["token"]})
        assert status == 200, answer

    def ends(self, resource):
        wait_until(lambda: self.holders(resource) == 0,
                   "the lock is released, or ends", 10)


def landed(writes):
    """Those that the store has taken. What was asked for right before the pause
    may come late: the fencing token has it refused."""
    return [write for write in writes if write[3] == 200]


def quiet_after(writes, moment_ms):
    late = [write for write in writes if write[-1] > moment_ms]
    assert not late, f"it wrote without the lock: {late}"


# ---- a web handler ------------------------------------------------------------

class Web:
    def __init__(self, shop):
        self.shop, [self.port] = shop, free_ports(1)
        shop.put("/orders/1", "new")
        shop.begin(str(self.port))
        wait_until(lambda: self.post("2")[0] == 404, "the handler serves", 30)

    def post(self, order="1"):
        link = http.client.HTTPConnection(HOST, self.port, timeout=20)
        try:
            link.request("POST", f"/orders/{order}/ship")
            answer = link.getresponse()
            return answer.status, answer.read().decode().strip()
        except ConnectionRefusedError:
            return 0, ""
        finally:
            link.close()

    @contextlib.contextmanager
    def posted(self):
        """What a request gets that is under way meanwhile, in a list."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.post()))
        thread.start()
        yield answers
        thread.join(20)
        assert answers, "no answer"


def story_web(shop):
    """it ships once, though asked twice; refuses while somebody else does"""
    web = Web(shop)
    with web.posted() as first, web.posted() as second:
        pass
    assert first == second == [(200, "shipped")], (first, second)
    writes = shop.writes("/orders/1")
    assert [state for _, state, *_ in writes] == ["picked", "packed", "shipped"]
    assert len({number for _, _, number, *_ in writes}) == 1
    shop.ends("order:1")
    shop.put("/orders/3", "new")
    shop.rival_takes("order:3")
    assert web.post("3") == (409, "another request ships it")
    assert shop.writes() == writes, "it wrote without the lock"


def story_web_forced(shop):
    """an operator releases its lock: it stops, says so, and goes on when asked"""
    web = Web(shop)
    with web.posted() as answers:
        shop.has_written("/orders/1")
        _, lost_ms = shop.force_release("order:1")
        # each step takes longer than until the next renewal
    status, text = answers[0]
    assert status == 503, answers
    quiet_after(shop.writes("/orders/1"), lost_ms + RENEWAL_MS + shop.step_ms)
    assert shop.look("/orders/1") != "shipped", "it finished without the lock"
    shop.rival_leaves()
    assert web.post() == (200, "shipped")
    assert shop.look("/orders/1") == "shipped"


def story_web_paused(shop):
    """it is paused past the end of its lock: no write when it wakes up"""
    web = Web(shop)
    with web.posted() as answers:
        mine = shop.has_written("/orders/1")[0][2]
        shop.program.tell(signal.SIGSTOP)
        shop.ends("order:1")
        number, _ = shop.rival_takes("order:1")
        before = landed(shop.writes_of(mine))
        assert shop.put("/orders/1", "packed", number) == 200
        shop.program.tell(signal.SIGCONT)
    assert answers[0][0] == 503, answers
    assert landed(shop.writes_of(mine)) == before, "it wrote without the lock"
    shop.rival_leaves()
    assert web.post() == (200, "shipped")


# ---- a cron job ---------------------------------------------------------------

def today():
    return datetime.date.today().isoformat()


def story_report(shop):
    """it reports once a day, and says nothing while another machine does it"""
    with shop.rival_stays("report") as grant:
        program = shop.begin()
        assert program.result() == 0 and not shop.writes(), program.lines
    assert shop.begin().result() == 0, shop.program.lines
    assert shop.look("/report/day") == today(), shop.program.lines
    writes = shop.writes("/report/")
    assert len(writes) == 4, writes
    assert all(number > grant for _, _, number, *_ in writes), writes
    shop.ends("report")
    assert shop.begin().result() == 0
    assert shop.writes("/report/") == writes, "it reported twice"


def story_report_nodes_dead(shop):
    """three nodes die: it ends before its lock does, and fails"""
    program = shop.begin()
    shop.has_written("/report/")
    for node in shop.nodes[:3]:
        node.kill()
    left_ms = max(node.do("PTTL", "report") for node in shop.nodes[3:])
    end_ms = now_ms() + left_ms
    assert program.result() != 0, program.lines
    assert program.lines, "cron has nothing to mail"
    # what it had sent by then, the store may have written later
    quiet_after(shop.writes(), end_ms + shop.step_ms)
    assert shop.look("/report/day") in ("", None), "it finished without the lock"


# ---- a queue worker -----------------------------------------------------------

def orders(shop, count=3):
    for number in range(1, count + 1):
        shop.put(f"/orders/{number}", "new")


def story_worker(shop):
    """it ships all orders but that of another worker, and ends after SIGTERM"""
    orders(shop)
    with shop.rival_stays("order:2"):
        program = shop.begin()
        shop.has_written("/orders/3", 3)
        assert shop.look("/orders/1") == "shipped" and not shop.writes("/orders/2")
    shop.has_written("/orders/2")
    program.tell(signal.SIGTERM)
    assert program.result() == 0, program.lines
    assert shop.look("/orders/2") == "shipped", "it left what it had begun"
    assert shop.holders("order:2") == 0, "it did not release the lock"


def story_worker_forced(shop):
    """an operator releases its lock: it gives up this order, and does others"""
    orders(shop, 2)
    program = shop.begin()
    shop.has_written("/orders/1")
    _, lost_ms = shop.force_release("order:1")
    program.says("1 given up")
    quiet_after(shop.writes("/orders/1"), lost_ms + RENEWAL_MS + shop.step_ms)
    assert shop.look("/orders/1") != "shipped", "it finished without the lock"
    shop.has_written("/orders/2")
    shop.rival_leaves()
    wait_until(lambda: shop.look("/orders/1") == "shipped", "the order goes on", 20)


def story_worker_paused(shop):
    """it is paused past the end of its lock: no write when it wakes up"""
    orders(shop, 1)
    program = shop.begin()
    mine = shop.has_written("/orders/1")[0][2]
    program.tell(signal.SIGSTOP)
    shop.ends("order:1")
    number, _ = shop.rival_takes("order:1")
    assert shop.put("/orders/1", "picked", number) == 200
    before = landed(shop.writes_of(mine))
    program.tell(signal.SIGCONT)
    program.says("1 given up")
    assert landed(shop.writes_of(mine)) == before, "it wrote without the lock"


# ---- a leader -----------------------------------------------------------------

def leader(shop):
    return shop.holder("leader").get("owner")


def story_leader(shop):
    """one of two leads; when it is told to end, the other one leads at once"""
    first = shop.begin("one")
    shop.has_written("/leader/")
    second = shop.begin("two")
    wait_until(lambda: shop.has_waiter("leader"), "two waits for the lock", 30)
    shop.has_written("/leader/", 3)
    assert {state for _, state, *_ in shop.writes()} == {"one"}
    first.tell(signal.SIGTERM)
    assert first.result() == 0, first.lines
    told_ms = now_ms()
    second.says("leads, with fencing token")
    assert now_ms() < told_ms + TTL_MS / 2, "it waited until the lock had ended"
    wait_until(lambda: leader(shop) == "two", "two leads", 5)


def story_leader_paused(shop):
    """it is paused: another one leads; awake, it writes nothing, and waits"""
    first = shop.begin("one")
    shop.has_written("/leader/")
    second = shop.begin("two")
    first.tell(signal.SIGSTOP)
    second.says("leads, with fencing token", 30)
    shop.has_written("/leader/2")
    first.tell(signal.SIGCONT)
    first.says("leads no more")
    second.tell(signal.SIGTERM)
    wait_until(lambda: leader(shop) == "one", "the first leads again", 15)
    wait_until(lambda: shop.writes()[-1][1] == "one", "it writes again", 5)
    states = [state for _, state, *_ in sorted(shop.writes(), key=lambda w: w[-1])]
    turns = [a for a, b in zip(states, [None, *states]) if a != b]
    assert turns == ["one", "two", "one"], turns
    numbers = [number for _, _, number, *_ in shop.writes()]
    assert numbers == sorted(numbers), numbers


story_report_nodes_dead.step_ms = 2000  # longer than the lock, in all
story_web_forced.step_ms = story_worker_forced.step_ms = 800
STORIES = {name.removeprefix("story_"): story
           for name, story in globals().copy().items()
           if name.startswith("story_")}


def stories_for(program):
    """Those of web.py begin with web."""
    kind = program.partition(".")[0]
    return {name: story for name, story in STORIES.items()
            if name.partition("_")[0] == kind}


def play(command, name):
    story = STORIES[name]
    shop = Shop(command)
    shop.step_ms = getattr(story, "step_ms", STEP_MS)
    with shop:
        story(shop)

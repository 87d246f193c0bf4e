# SPDX-License-Identifier: MIT
"""The examples, wrong on purpose: what is changed in their text, and which
stories must notice."""
import re

REQUESTS = [
    ("never renews", [
        ("self.renewer.start()", "self.done.wait(0)"),
        ("self.renewer.join()", "pass"),
    ], ["plain", "node_paused"]),
    ("does not release", [
        ("self.renewer.join()\n", "self.renewer.join()\n        return\n"),
    ], ["plain"]),
    ("does not wait", [
        ('wait_ms=int(wait_s * 1000)', 'wait_ms=0'),
        ("or now() > deadline", "or status == 409"),
    ], ["contended"]),
    ("asks the first replica only", [
        ("self.urls.append(self.urls.pop(0))", "pass"),
    ], ["replica_killed", "no_quorum"]),
    ("waits for an answer as long as it takes", [
        ("timeout=limit_s", "timeout=None"),
    ], ["replica_stopped"]),
    ("goes on after a loss", [
        ("raise LockLost", "pass"),
    ], ["lost", "all_dead", "asleep"]),
    ("takes 404 and not_owner for no answer", [
        ("self.until = 0", "pass"),
    ], ["lost"]),
    ("counts from the answer, not from the request", [
        ("granted, self.fence = sent", "granted, self.fence = now()"),
    ], ["all_dead"]),
    ("looks for the loss in the background only, which is slow", [
        ("            lock.check()\n", ""),
        ("            if (left_s :=",
         "            time.sleep(0.3)\n            if (left_s :="),
    ], ["asleep"]),
    ("has a new key for each repeat", [
        ("headers=self.head", 'headers={"Idempotency-Key": str(uuid.uuid4())}'),
    ], ["answer_lost", "known"]),
    ("blames the time for a refusal", [
        ("wrong = TimeoutError if status in (409, 503) else ValueError",
         "wrong = TimeoutError"),
    ], ["refused"]),
    ("does not say why it was refused", [
        ('raise wrong(f"{self.want}: {status} {self.grant}")',
         "sys.exit(1)"),
    ], ["refused"]),
    ("asks for what was refused again and again", [
        ("if status >= 300 and (status not in (409, 503) or now() > deadline)",
         "if status >= 300 and now() > deadline"),
    ], ["refused"]),
    ("writes JSON by hand", [
        ("json=body", """data=str(body).replace("'", '"')"""),
        ("headers=self.head)",
         'headers={**self.head, "Content-Type": "application/json"})'),
    ], ["quoted"]),
    ("runs the demo for whoever imports it", [
        ('if __name__ == "__main__"', "if True"),
    ], ["imported"]),
    ("works in the main thread only", [
        ("threading.current_thread() is threading.main_thread()", "True"),
    ], ["aside"]),
    ("tells nobody but the main thread of a loss", [
        ("        if self.left_s() <= 0:\n            raise LockLost",
         "        if self.is_of_main and self.left_s() <= 0:\n"
         "            raise LockLost"),
    ], ["aside_lost"]),
    ("has one key for all locks", [
        ("str(uuid.uuid4())", "'0123456789abcdef'"),
        ('{"resource": resource,', '{"resource": "r",'),
    ], ["aside"]),
    ("asks for the resource, not for a permit", [
        (', "ttl_ms": ttl_ms, **more}', ', "ttl_ms": ttl_ms}'),
        ('self.grant.get("slots")', '[0]'),
    ], ["permits"]),
    ("does not say that it only reads", [
        (', "ttl_ms": ttl_ms, **more}', ', "ttl_ms": ttl_ms}'),
    ], ["readers"]),
    ("comes back too early", [
        (' + self.grant.get("retry_after_ms", 0) / 1000', ""),
    ], ["known"]),
]

# the others: what each does in a way of its own
SHELL = [
    ("ends the command without a word", [
        ('kill -TERM -- "-$command" || return 0',
         'kill -KILL -- "-$command" || return 0'),
    ], ["nested"]),
    ("gives an inner command as long as the outer one has", [
        ("outer_ms=$((${LOCK_GRACE_MS:-$ttl_ms} / 2))", "outer_ms=$ttl_ms"),
        ("+ $1))", "+ $1 * 2))"),
    ], ["nested"]),
    ("counts from the answer, not from the request", [
        ('<<<"$raw" 2>/dev/null)', '<<<"$raw" 2>/dev/null) && left && '
         'sent_ms=$now_ms'),
    ], ["all_dead"]),
    ("writes JSON by hand", [
        ('"$(want "$slice_ms")"',
         r"""'{"resource":"'"$resource"'","ttl_ms":'$ttl_ms'}'"""),
    ], ["quoted"]),
    ("asks for the resource, not for a permit", [
        ('"${LIMIT:-null}"', "null"),
    ], ["permits"]),
    ("does not say that it only reads", [
        (", mode: env.MODE}", "}"),
    ], ["readers"]),
]
BROKEN = {"requests": REQUESTS, "shell": SHELL}

# the same for the files of api/clients/examples/fencing/; in SQL, changed
# wherever it stands
SQL = ("postgresql.sql", "sqlite.sql")
CHECK = [("lock.check()  # raises LockLost", "pass")]
PHP_CHECK = [("$lock->check(); // extends the lock in time; throws LockLost", "")]
RUBY_CHECK = [("lock.check # raises LockLost", "")]
JAVA_CHECK = [("lock.check(); // throws LockLostException", ""),
              (".interruptOnLoss()", "")]
BROKEN_FILES = [
    (SQL, "compares nothing", [(r"(orders\.)?fence <= [^\s;]+", "true")],
     ["late_write", "late_read", "late_put"]),
    (SQL, "does not raise the fence on reads",
     [(r"SET fence = (\S+)", "SET fence = fence")], ["late_read"]),
    (["mariadb.sql"], "compares nothing", [
        (r"fence <= :fence", "true"),
        (r"IF\(fence <= VALUES\(fence\), VALUES\(state\), state\)",
         "VALUES(state)"),
        (r"GREATEST\(fence, VALUES\(fence\)\)", "VALUES(fence)"),
    ], ["late_write", "late_read", "late_put"]),
    (["mariadb.sql"], "counts the rows that were changed", [
        (r"SELECT id .* FOR UPDATE", "SELECT id FROM orders "
         "WHERE id = :id AND ROW_COUNT() > 0"),
    ], ["late_write"]),
    (["mariadb.sql"], "does not raise the fence on reads", [
        (r"UPDATE orders SET fence = :fence\n", "UPDATE orders SET id = id\n"),
        (r"SELECT state FROM orders WHERE id = :id AND fence =",
         "SELECT state FROM orders WHERE id = :id AND fence <="),
    ], ["late_read"]),
    (["redis.lua"], "compares nothing", [("if seen and", "if false and")],
     ["late_write", "late_read", "late_put"]),
    (["redis.lua"], "does not raise the fence on reads", [
        ("redis.call('HSET', KEYS[1], 'fence', fence)\nif state then",
         "if state then\n  redis.call('HSET', KEYS[1], 'fence', fence)"),
    ], ["late_read"]),
    (["etag.py"], "compares nothing", [('if order["fence"] > fence', "if False")],
     ["late_write", "late_read", "late_put", "between"]),
    (["etag.py"], "does not raise the fence on reads", [
        ('order["fence"] = fence', 'order["fence"] = fence if state else 0'),
    ], ["late_read"]),
    (["etag.py"], "writes without a condition", [(", **condition)", ")")],
     ["between"]),
    # the programs of docs/guide.md
    (["web.py"], "does not look for a loss", CHECK, ["web_forced", "web_paused"]),
    (["web.py"], "locks each request, not the order", [
        ('f"order:{order}"', 'f"order:{order}:{os.urandom(8).hex()}"'),
    ], ["web"]),
    (["web.mjs"], "does not look for a loss", [
        ("lock.check(); // throws LockLost", ""),
        ("const { signal } = lock;", "const signal = left;"),
    ], ["web_forced", "web_paused"]),
    (["web.mjs"], "ships again what was shipped", [("done + 1", "1")], ["web"]),
    (["web.php"], "does not look for a loss", PHP_CHECK, ["web_forced"]),
    (["web.rb"], "does not look for a loss", RUBY_CHECK, ["web_forced"]),
    (["web.rb"], "locks each request, not the order", [
        ('"order:#{order}"', '"order:#{order}:#{rand}"'),
    ], ["web"]),
    (["web.java"], "does not look for a loss", JAVA_CHECK, ["web_forced"]),
    (["web.java"], "ships again what was shipped", [("done + 1", "1")], ["web"]),
    (["report.py"], "does not look for a loss", CHECK, ["report_nodes_dead"]),
    (["report.py"], "reports again", [
        ('.text == today:', '.text == "today":')], ["report"]),
    (["report.sh"], "reports again", [('!= "$today" ]', '!= "today" ]')],
     ["report"]),
    (["report.php"], "does not look for a loss", PHP_CHECK, ["report_nodes_dead"]),
    (["report.php"], "reports again", [("=== $today)", "=== 'today')")],
     ["report"]),
    (["report.rb"], "does not look for a loss", RUBY_CHECK, ["report_nodes_dead"]),
    (["report.rb"], "reports again", [("body == TODAY", 'body == "today"')],
     ["report"]),
    (["report.java"], "does not look for a loss", JAVA_CHECK, ["report_nodes_dead"]),
    (["report.java"], "reports again", [("equals(today)", 'equals("today")')],
     ["report"]),
    (["worker.py"], "does not look for a loss", CHECK,
     ["worker_forced", "worker_paused"]),
    (["worker.py"], "ends amid an order", [
        ("lambda *_: stop.set()", "signal.SIG_DFL"),
    ], ["worker"]),
    (["worker.php"], "does not look for a loss", PHP_CHECK, ["worker_forced"]),
    (["worker.php"], "ends amid an order", [("$isOver = true;", "exit(0);")],
     ["worker"]),
    (["worker.rb"], "does not look for a loss", RUBY_CHECK, ["worker_forced"]),
    (["worker.java"], "does not look for a loss", JAVA_CHECK, ["worker_forced"]),
    (["worker.java"], "ends amid an order", [("worker.join()", "worker.join(1)")],
     ["worker"]),
    (["leader.php"], "leads without a rival", [
        ("lock('leader'", "lock($owner"),
    ], ["leader"]),
    (["leader.php"], "does not look for a loss", PHP_CHECK, ["leader_paused"]),
    (["leader.rb"], "leads without a rival", [
        ('lock("leader"', "lock(OWNER"),
    ], ["leader"]),
    (["leader.rb"], "does not look for a loss", [
        *RUBY_CHECK, (", interrupt: true", ""),
    ], ["leader_paused"]),
    (["leader.java"], "leads without a rival", [
        ('client.lock("leader")', "client.lock(owner)"),
    ], ["leader"]),
    (["leader.py"], "does not stop when it has lost the lock", [
        ("lock.check()  # raises LockLost", "pass"),
        ("await lead(lock, store)",
         "await asyncio.shield(asyncio.ensure_future(lead(lock, store)))"),
    ], ["leader_paused"]),
    (["leader.mjs"], "leads without a rival", [
        ('withLock("leader"', "withLock(owner"),
    ], ["leader"]),
    (["leader.mjs"], "does not stop when it has lost the lock", [
        ("lock.check(); // throws LockLost", ""),
        ("AbortSignal.any([lock.signal, stop.signal])", "stop.signal"),
    ], ["leader_paused"]),
]
for files, *defect in BROKEN_FILES:
    for name in files:
        BROKEN.setdefault(name, []).append(defect)


def break_file(source, changes, target):
    text = source.read_text()
    for old, new in changes:
        if source.suffix == ".sql":
            text, count = re.subn(old, new, text)
            assert count, f"{source} has no {old}"
        else:
            assert text.count(old) == 1, f"{source} has not once: {old}"
            text = text.replace(old, new)
    if source.suffix == ".py":
        compile(text, target, "exec")
    target.write_text(text)
    target.chmod(source.stat().st_mode)
    return target

# SPDX-License-Identifier: MIT
"""What the stacks of redlockd and of its nodes were in: `perf script` of samples
that hold the pid, and a line "address symbol (file)" for each frame, the
innermost first."""
import collections
import functools
import re
import subprocess

FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")
KERNEL = "[kernel.kallsyms]"

# of calls that several things use: who, by the file that calls
CALLERS = {"libmicrohttpd": "clients", "libhiredis": "nodes"}
CALLS = {"send": "send", "sendto": "send", "sendmsg": "send", "recv": "recv",
         "recvfrom": "recv", "read": "read", "write": "write",
         "writev": "write", "epoll_wait": "epoll_wait",
         "epoll_pwait": "epoll_wait", "epoll_ctl": "epoll_ctl",
         "getsockopt": "getsockopt"}
IN_KERNEL = re.compile(r"(?:__x64_sys|__arm64_sys|__sys|ksys|do)_(\w+)")
IN_LIBC = re.compile(r"(?:__GI_|__libc_)?_*(\w+)")
INTERRUPT = re.compile(r"asm_(sysvec_|common_interrupt)|el[01]\w*_irq")
FAULT = re.compile(r"asm_exc_page_fault|el0_(da|ia)$")

JSON = {"json", "body", "render", "problem", "jsontext", "utf8"}
MALLOC = re.compile(r"(__libc_|_int_|__GI___libc_)?(malloc|free|cfree|realloc|"
                    r"calloc)\b|unlink_chunk|malloc_consolidate|sysmalloc|"
                    r"tcache_|arena_get|systrim|__default_morecore")
STRINGS = re.compile(r"_*(GI_+)?(mem|str|wcs|raw)[a-z]*(_|$)")
CLOCK = re.compile(r"(__)?(clock_gettime|gettimeofday|time)\b")
# what the node calls to let Lua itself work; the rest hands values over
LUA_RUNS = {"lua_pcall", "lua_gc"}
LIBRARIES = {"libmicrohttpd": "HTTP library", "libjansson": "JSON",
             "libuv": "libuv", "libhiredis": "hiredis"}

KERNEL_NAMES = ["kernel: send to clients", "kernel: send to nodes",
                "kernel: send", "kernel: recv from clients",
                "kernel: recv from nodes", "kernel: recv", "kernel: read",
                "kernel: write", "kernel: epoll_wait", "kernel: epoll_ctl",
                "kernel: getsockopt", "kernel: other calls",
                "kernel: page faults", "kernel: interrupts, preemption"]
NAMES = {
    "server": KERNEL_NAMES + [
        "HTTP library", "JSON", "api: the rest", "engine", "node: links, batches",
        "base", "main, unknown", "libuv", "hiredis", "libc: malloc",
        "libc: copies, strings", "libc: the rest", "clocks"],
    "nodes": KERNEL_NAMES + [
        "reading commands", "script: Lua", "script: Lua's collector",
        "script: memory, strings",
        "script: between Lua and Redis", "script: its commands",
        "commands outside a script", "memory, strings", "other", "clocks"],
}


def read(path):
    """Of each sample (pid, [(address, symbol, file)…])."""
    samples, frames, pid = [], [], None
    for line in open(path, encoding="utf-8", errors="replace"):
        found = FRAME.match(line)
        if found:
            frames.append((int(found[1], 16), found[2], found[3]))
        elif line.strip():
            pid = int(line)
        elif frames:
            samples.append((pid, frames))
            frames = []
    return samples


def short(file):
    return file.rsplit("/", 1)[-1]


def call_of(frames):
    """The name of the system call that the frames are in."""
    for _, symbol, file in frames:
        found = None
        if file == KERNEL:
            found = IN_KERNEL.fullmatch(symbol)
        elif short(file).startswith("libc.so"):
            found = IN_LIBC.fullmatch(symbol.split("@")[0])
        if found and found[1] in CALLS:
            return CALLS[found[1]]
        if file != KERNEL and not short(file).startswith("libc.so"):
            break
    return None


def partner(frames):
    """Whom a call speaks to: clients, or nodes"""
    for _, _, file in frames:
        name = short(file)
        if file == KERNEL or name.startswith(("libc.so", "libpthread")):
            continue
        for library, who in CALLERS.items():
            if name.startswith(library):
                return who
        return None if name.startswith("lib") else "nodes"
    return None


def kernel_row(frames, who):
    """Of a stack that ends in the kernel or just behind a call; else None"""
    symbols = [symbol for _, symbol, file in frames if file == KERNEL]
    if any(INTERRUPT.match(symbol) for symbol in symbols):
        return "kernel: interrupts, preemption"
    if any(FAULT.match(symbol) for symbol in symbols):
        return "kernel: page faults"
    call = call_of(frames)
    if call is None:
        return "kernel: other calls" if symbols else None
    if who == "server" and call in ("send", "recv"):
        way = "to" if call == "send" else "from"
        partner_is = partner(frames)
        if partner_is:
            return f"kernel: {call} {way} {partner_is}"
    return f"kernel: {call}"


def library_row(frame):
    """Of a frame in a library; None if it is in the program itself"""
    _, symbol, file = frame
    name = short(file)
    if file == "[vdso]" or CLOCK.match(symbol):
        return "clocks"
    for library, row in LIBRARIES.items():
        if name.startswith(library):
            return row
    if name.startswith("libc.so"):
        if MALLOC.match(symbol):
            return "libc: malloc"
        return "libc: copies, strings" if STRINGS.match(symbol) else "libc: the rest"
    if name.startswith(("lib", "ld-", "[")):
        return "libc: the rest"
    return None


def sources(binary, addresses):
    """{address: source file}. Functions of several files have equal names, so
    the lines of the debugging information are asked. A function of a header is
    part of the file that it was inlined in."""
    asked = "\n".join(f"{address:x}" for address in addresses)
    out = subprocess.run(["addr2line", "-a", "-i", "-e", binary], input=asked,
                         capture_output=True, text=True, check=True).stdout
    files, address = {}, None
    for line in out.splitlines():
        if line.startswith("0x"):
            address = int(line, 16)
            continue
        found = re.search(r"(?:.*/|^)((?:server|api)/[\w/]+\.c):", line)
        if found:
            files[address] = found[1]
    return files


def source_row(source):
    folder, _, name = source.rpartition("/")
    stem = name.rpartition(".")[0]
    if stem == "clock":
        return "clocks"
    if folder.split("/")[0] == "api":
        return "JSON" if stem in JSON else "api: the rest"
    part = "/".join(folder.split("/")[:2])
    return {"server/engine": "engine", "server/node": "node: links, batches",
            "server/base": "base", "server/lock": "base",
            "server/config": "base"}.get(part, "main, unknown")


def server_rows(stacks):
    counts = collections.Counter()
    own = collections.defaultdict(collections.Counter)
    for frames in stacks:
        row = kernel_row(frames, "server") or library_row(frames[0])
        if row:
            counts[row] += 1
        else:
            own[frames[0][2]][frames[0][0]] += 1
    for binary, addresses in own.items():
        files = sources(binary, addresses)
        for address, times in addresses.items():
            counts[source_row(files.get(address, ""))] += times
    return counts


@functools.lru_cache
def lua_range(binary):
    """Where Lua lies in the node's program. Most of its functions have no name
    there, but those between its public ones are all its own."""
    out = subprocess.run(["nm", "-D", "--defined-only", binary],
                         capture_output=True, text=True, check=True).stdout
    public = [int(line.split()[0], 16) for line in out.splitlines()
              if re.search(r" T (lua_|luaL_|luaopen_)", line)]
    return min(public), max(public)


def is_node(frame):
    return "redis" in short(frame[2]) or "valkey" in short(frame[2])


def is_lua(frame):
    first, last = lua_range(frame[2])
    return first <= frame[0] <= last


def collector_calls(stacks):
    """Where Lua's collector calls its parts: it has no name, but lua_gc, which
    calls it, has one."""
    return {frames[at - 1][0] for frames in stacks
            for at, (_, symbol, _) in enumerate(frames)
            if symbol == "lua_gc" and at > 1}


def script_row(frames, collector):
    """Of frames up to the command that runs the script"""
    symbols = [symbol for _, symbol, _ in frames]
    if "call" in symbols and "scriptCall" in symbols[symbols.index("call"):]:
        return "script: its commands"
    if any(frame[0] in collector for frame in frames):
        return "script: Lua's collector"
    inner = None  # of the caller in the node's own code
    for frame in frames:
        if not is_node(frame):
            continue
        if not is_lua(frame):
            if inner in LUA_RUNS:
                break
            return "script: between Lua and Redis"
        inner = frame[1]
    return "script: Lua" if is_node(frames[0]) else "script: memory, strings"


def node_row(frames, collector):
    row = kernel_row(frames, "nodes")
    if row:
        return row
    if library_row(frames[0]) == "clocks":
        return "clocks"
    symbols = [symbol for _, symbol, _ in frames]
    runs = [at for at, symbol in enumerate(symbols)
            if symbol.startswith("eval") or symbol == "lua_pcall"]
    if runs or any(is_node(frame) and is_lua(frame) for frame in frames):
        return script_row(frames[:runs[-1] + 1] if runs else frames, collector)
    if "call" in symbols:
        return "commands outside a script"
    if not is_node(frames[0]):
        return "memory, strings"
    if "readQueryFromClient" in symbols or "processInputBuffer" in symbols:
        return "reading commands"
    return "other"


def rows(stacks, who):
    """How many of the stacks belong to each row"""
    if who == "server":
        return server_rows(stacks)
    collector = collector_calls(stacks)
    return collections.Counter(node_row(frames, collector) for frames in stacks)

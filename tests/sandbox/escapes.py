"""More escape probes than the self-test has time for. The tests try them with `offing.sandbox.escape_probes`."""

from collections.abc import Sequence
from dataclasses import replace

from offing.sandbox.escape_probe import PROBE_LIMITS, EscapeProbe
from offing.sandbox.escape_probes import PROBES
from offing.sandbox.sandbox import KillReason

MORE: Sequence[EscapeProbe] = (
    EscapeProbe(
        "devices of the machine",
        """
known = {"console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
         "urandom", "zero"}
if set(attempt(os.listdir, "/dev") or ()) - known:
    reached()
for name in ("mem", "kmsg", "kvm", "vda", "sda", "fuse", "net/tun", "vhost-vsock", "loop-control"):
    if attempt(lambda: open(f"/dev/{name}", "rb").read(1)):
        reached()
tried()
""",
    ),
    EscapeProbe(
        "settings of the kernel",
        """
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches",
             "/proc/sys/kernel/hostname"):
    if attempt(lambda: open(path, "w").write("1")):
        reached()
tried()
""",
    ),
    EscapeProbe(
        "control groups",
        """
if attempt(os.listdir, "/sys/fs/cgroup") or attempt(os.listdir, "/sys"):
    reached()
tried()
""",
    ),
    EscapeProbe(
        "memory of what runs it",
        """
def read():
    with open(f"/proc/{os.getppid()}/mem", "r+b", buffering=0) as memory:
        return SECRET.encode() in memory.read(1 << 20)
if attempt(read) or attempt(call, (310, 270), os.getppid() if hasattr(os, "getppid") else 1, 0, 0, 0, 0, 0) is not None:
    reached()
tried()
""",
    ),
    EscapeProbe(
        "keys of the kernel",
        """
for number in ((248, 217), (249, 218), (250, 219)):
    if attempt(call, number, b"user", b"name", b"x", 1, 0) is not None:
        reached()
tried()
""",
    ),
    EscapeProbe(
        "other families of sockets",
        """
import socket
for family in (16, 17, 38, 40, 10, 2, 44, 31):  # netlink, packet, crypto, virtual machines, internet, xdp, bluetooth
    for kind in (1, 2, 3):
        made = attempt(socket.socket, family, kind)
        if made is not None and hasattr(os, "fork"):
            reached()
        if made is not None and attempt(lambda: made.connect(("127.0.0.1", PORT)) is None):
            reached()
tried()
""",
    ),
    EscapeProbe(
        "datagrams and names",
        """
import socket
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        return s.sendto(b"x", ("127.0.0.1", PORT))
if attempt(send) or attempt(lambda: socket.getaddrinfo("localhost", PORT)):
    reached()
tried()
""",
    ),
    EscapeProbe(
        "killing everything",
        """
import signal
tried()
attempt(os.kill, -1, signal.SIGKILL)
""",
        accepted_kills=(KillReason.CRASHED,),
    ),
    EscapeProbe(
        "killing what runs it",
        """
import signal
tried()
if hasattr(os, "getppid"):
    attempt(os.kill, os.getppid(), signal.SIGKILL)
""",
        accepted_kills=(KillReason.CRASHED,),
    ),
    EscapeProbe(
        "more open files than allowed",
        """
held = []
while len(held) < 5000:
    one = attempt(open, "f", "w")
    if one is None:
        break
    held.append(one)
if len(held) > 1000:
    reached()
tried()
""",
        accepted_kills=(KillReason.FILES,),
    ),
    EscapeProbe(
        "a small file that becomes a large one",
        """
import zlib
try:
    packed = zlib.compressobj()
    bomb = b"".join(packed.compress(b"\\0" * (1 << 20)) for _ in range(96)) + packed.flush()
    out, wrote = zlib.decompressobj(), 0
    with open("bomb", "wb") as file:
        while bomb:
            wrote += file.write(out.decompress(bomb, 1 << 20))
            bomb = out.unconsumed_tail
            if wrote > 64 << 20:
                reached()
except (OSError, MemoryError):
    pass
tried()
os._exit(0)
""",
        accepted_kills=(KillReason.FILES, KillReason.MEMORY),
    ),
    EscapeProbe(
        "more threads than allowed",
        """
import threading
count = 0
try:
    for _ in range(500):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except Exception:
    pass
if count > 100:
    reached()
tried()
os._exit(0)
""",
        accepted_kills=(KillReason.MEMORY, KillReason.CRASHED),
    ),
    EscapeProbe(
        "computing without end", "while True: pass", (KillReason.TIME,), replace(PROBE_LIMITS, timeout_seconds=1)
    ),
    EscapeProbe(
        "programs of the machine",
        """
import subprocess
for program in ("/bin/sh", "/usr/bin/env", "/usr/bin/python3", "/usr/bin/bwrap", "/sbin/init"):
    if attempt(lambda: subprocess.run([program, "-c", "exit 0"], timeout=2).returncode is not None):
        reached()
tried()
""",
    ),
    EscapeProbe(
        "rights that are left",
        """
text = attempt(lambda: open("/proc/self/status").read())
if text is not None:
    told = dict(line.split(":", 1) for line in text.splitlines())
    rights = {told[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    if rights != {"0" * 16} or told["NoNewPrivs"].strip() != "1" or told["Seccomp"].strip() != "2":
        reached()
    who = {*told["Uid"].split(), *told["Gid"].split(), *told["Groups"].split()}
    if who != {"65534"}:
        reached()
tried()
""",
    ),
    EscapeProbe(
        "typing into a terminal",
        """
def type_in():
    import fcntl
    for number in (0, 1, 2):
        fcntl.ioctl(number, 0x5412, b"x")
    return True
if attempt(type_in) or attempt(lambda: open("/dev/tty", "w").write("x")):
    reached()
tried()
""",
    ),
    EscapeProbe(
        "memory that no limit counts",
        """
if hasattr(os, "memfd_create") and attempt(os.memfd_create, "x") is not None:
    reached()
for number in ((29, 194), (68, 186), (64, 190), (447, 447)):
    if attempt(call, number, 0, 1 << 20, 0o1600) is not None:
        reached()
tried()
""",
    ),
    EscapeProbe(
        "connections that nobody accepts",
        """
import socket
def connections():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(chr(0) + "backlog")
    listener.listen(4096)
    for _ in range(500):
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(chr(0) + "backlog")
            one.send(bytes(1 << 17))
    return True
def datagrams():
    receivers = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(16)]
    for number, receiver in enumerate(receivers):
        receiver.bind(chr(0) + f"queue{number}")
        for _ in range(10):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
                one.sendto(bytes(1 << 17), chr(0) + f"queue{number}")
    return True
if attempt(connections) or attempt(datagrams):
    reached()
tried()
""",
        accepted_kills=(KillReason.MEMORY,),
    ),
    EscapeProbe(
        "sockets beside a child that nobody waits for",
        """
import socket
def fill():
    time.sleep(0.5)  # until that child has ended
    held, sent = [], 0
    while len(held) < 29 and (pair := attempt(socket.socketpair)):
        held.append(pair)
        for end in pair:
            end.setblocking(False)
            while more := attempt(end.send, bytes(1 << 14)):
                sent += more
    with open(f"sent{os.getpid()}", "w") as out:
        out.write(str(sent))
    time.sleep(60)
def sent():
    return [int(open(name).read() or 0) for name in os.listdir(".")]
children = 12 if hasattr(os, "fork") else 0
for _ in range(children):
    if fork() == 0:
        fill()
if fork() == 0:
    os._exit(0)
ends = time.monotonic() + 8
while time.monotonic() < ends and len(sent()) < children:
    time.sleep(0.05)
if sum(sent()) > 64 << 20:
    time.sleep(1)
    reached()
tried()
os._exit(0)
""",
        accepted_kills=(KillReason.MEMORY,),
    ),
    EscapeProbe(
        "files beside a child that nobody waits for",
        """
if fork() == 0:
    os._exit(0)
for number in range(60_000):
    if attempt(lambda: open(f"f{number}", "w").close() or True) is None:
        break
else:
    reached()
tried()
""",
        accepted_kills=(KillReason.FILES, KillReason.TIME),
    ),
    EscapeProbe(
        "sockets that are under way",
        """
import array, socket
def under_way():
    pair, held = socket.socketpair(), 0
    pair[0].setblocking(False)
    while held < 2000:
        some = socket.socketpair()
        some[0].send(bytes(1 << 15))
        sent = attempt(pair[0].sendmsg, [b"x"], [(socket.SOL_SOCKET, 1, array.array("i", [s.fileno() for s in some]))])
        for one in some:
            one.close()
        if sent is None:
            return held
        held += 2
    return held
if (attempt(under_way) or 0) > 1000:
    reached()
tried()
""",
        accepted_kills=(KillReason.MEMORY,),
    ),
    EscapeProbe(
        "large pages that stay in pipes",
        """
def pinned():
    import ctypes, mmap
    held = 0
    for _ in range(8):
        out = os.pipe()[1]
        for _ in range(16):
            area = mmap.mmap(-1, 4 << 20)
            area.madvise(14)  # huge pages
            area.write(bytes(4 << 20))
            where = ctypes.addressof(ctypes.c_char.from_buffer(area))
            span = (ctypes.c_void_p * 2)((where + (2 << 20) - 1) & -(2 << 20), 4096)
            if call((278, 75), out, ctypes.byref(span), 1, 0) is None:
                return held
            held += 1
    return held
if attempt(pinned):
    reached()
tried()
""",
        accepted_kills=(KillReason.MEMORY,),
    ),
    EscapeProbe(
        "watches, contexts, rules and attributes",
        """
def context():
    import ctypes
    return call((206, 0), 1024, ctypes.byref(ctypes.c_ulong(0)))
for what in (lambda: call((294, 26), 0), context, lambda: call((444, 444), 0, 0, 1)):
    if attempt(what) is not None:
        reached()
open("file", "w").close()
if hasattr(os, "setxattr") and attempt(lambda: os.setxattr("file", "user.large", bytes(60_000)) is None):
    reached()
tried()
""",
    ),
    EscapeProbe(
        "timers and signals without end",
        """
def timers():
    import ctypes
    made, number = 0, ctypes.c_int()
    while made < 20_000 and call((222, 107), 1, 0, ctypes.byref(number)) is not None:
        made += 1
    return made
if (attempt(timers) or 0) > 1000:
    reached()
tried()
""",
    ),
    EscapeProbe(
        "more memory in the buffers of pipes",
        """
def piped():
    held = 0
    while ends := attempt(os.pipe):
        os.set_blocking(ends[1], False)
        while more := attempt(os.write, ends[1], bytes(1 << 16)):
            held += more
    return held
if (attempt(piped) or 0) > 8 << 20:
    reached()
tried()
""",
    ),
    EscapeProbe(
        "calls by another convention",
        """
tried()
import platform
if platform.machine() == "x86_64":
    if attempt(call, (0x40000000 + 39, 0)) is not None:
        reached()
""",
        accepted_kills=(KillReason.CRASHED,),
    ),
    EscapeProbe(
        "names and kinds of file that lead astray",
        """
for name in ("a\\nb", "c\\x1b[2J", "x" * 250, ".hidden", "-rf", "\\u202egnp.exe"):
    attempt(lambda: open(name, "w").write("x"))
for what in (lambda: os.mkfifo("pipe"), lambda: os.symlink("/proc/self/environ", "environ"),
             lambda: os.symlink(".", "loop"), lambda: os.mkdir("deep")):
    attempt(what)
here = "deep"
for _ in range(200):
    here += "/deeper"
    if attempt(lambda: os.mkdir(here) is None) is None:
        break
attempt(lambda: open(here + "/file", "w").write("x"))
tried()
""",
    ),
    EscapeProbe(
        "files with holes",
        """
def far():
    with open("sparse", "wb", buffering=0) as file:
        file.seek(1 << 40)
        return file.write(b"x")
open("holes", "w").close()
if attempt(lambda: os.truncate("holes", 1 << 40) is None) or attempt(far):
    reached()
tried()
""",
        accepted_kills=(KillReason.FILES,),
    ),
    EscapeProbe(
        "higher limits and priority",
        """
def raised():
    import resource
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
        resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return True
if attempt(raised) or attempt(lambda: os.setpriority(os.PRIO_PROCESS, 0, -20) is None):
    reached()
if attempt(lambda: time.clock_settime(time.CLOCK_REALTIME, 0) is None):
    reached()
tried()
""",
    ),
    EscapeProbe(
        "packages of the worker",
        """
for name in ("offing", "psycopg", "litellm", "wasmtime", "pip"):
    if attempt(__import__, name):
        reached()
tried()
""",
    ),
    EscapeProbe(
        "staying behind",
        """
if hasattr(os, "fork") and os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        time.sleep(600)
    os._exit(0)
tried()
""",
    ),
)

ALL = (*PROBES, *MORE)

"""The escape probes that run before anything else may run in a sandbox.

See `probe` for how they are checked.
"""

from collections.abc import Sequence
from dataclasses import replace

from offing.sandbox.escape_probe import PROBE_LIMITS, EscapeProbe
from offing.sandbox.sandbox import KillReason

PROBES: Sequence[EscapeProbe] = (
    EscapeProbe(
        "files of the host",
        """
for path in (SECRET, "/etc/passwd", "/etc/shadow", "/root", "/home", "/proc/1/root" + SECRET, "../.." + SECRET):
    if attempt(lambda: os.listdir(path) if os.path.isdir(path) else open(path).read()):
        reached()
tried()
""",
    ),
    EscapeProbe(
        "environment variables of the worker",
        """
import glob
known = {"HOME", "LANG", "LC_CTYPE", "LD_LIBRARY_PATH", "MPLBACKEND", "MPLCONFIGDIR", "OMP_NUM_THREADS",
         "OPENBLAS_NUM_THREADS", "PATH", "PWD", "TZ"}
seen = set(os.environ)
for path in attempt(glob.glob, "/proc/*/environ") or ():
    text = attempt(lambda: open(path, "rb").read()) or b""
    seen |= {part.partition(b"=")[0].decode("utf-8", "replace") for part in text.split(b"\\0") if part}
if seen - known:
    reached()
tried()
""",
    ),
    EscapeProbe(
        "the network",
        """
import socket
for family, place in ((socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_INET, ("192.0.2.1", 80))):
    def connect():
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(0.5)
            s.connect(place)
            return True
    if attempt(connect):
        reached()
if attempt(socket.getaddrinfo, "localhost.example", 80):
    reached()
tried()
""",
    ),
    EscapeProbe(
        "abstract sockets",
        """
import socket
def connect():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(chr(0) + ABSTRACT)
        return True
if attempt(connect):
    reached()
tried()
""",
    ),
    EscapeProbe(
        "processes of the host",
        """
import signal
def kill():
    os.kill(PID, 0)
    return "the process is there"
others = [n for n in attempt(os.listdir, "/proc") or () if n.isdigit() and int(n) > 20]
if PID > 20 and (attempt(kill) or others):
    reached()
tried()
""",
    ),
    EscapeProbe(
        "writing outside the workspace",
        """
for folder in ("/", "/etc", "/usr/lib", "/python/lib", "/dev", "/proc/sys/kernel", os.path.dirname(os.__file__),
               os.path.dirname(SECRET)):
    def write():
        with open(os.path.join(folder, "probe"), "w") as file:
            file.write("x")
        return True
    if attempt(write):
        reached()
tried()
""",
    ),
    EscapeProbe(
        "creating a user namespace",
        """
if attempt(call, (272, 97), 0x10000000) is not None:
    reached()
if attempt(call, (56, 220), 0x10000011, 0, 0, 0, 0) is not None:
    reached()
if attempt(call, (308, 268), 0, 0) is not None:
    reached()
tried()
""",
    ),
    EscapeProbe(
        "mounting and changing the root",
        """
if attempt(call, (165, 40), b"tmpfs", b"/work", b"tmpfs", 0, None) is not None:
    reached()
if attempt(call, (161, 51), b"/work") is not None:
    reached()
if attempt(call, (428, 428), -100, b"/", 1) is not None:
    reached()
tried()
""",
    ),
    EscapeProbe(
        "inspecting other processes",
        """
if attempt(call, (101, 117), 0, 0, 0, 0) is not None:
    reached()
if attempt(call, (101, 117), 16, 1, 0, 0) is not None:
    reached()
if attempt(call, (321, 280), 5, 0, 0) is not None or attempt(call, (425, 425), 1, 0) is not None:
    reached()
tried()
""",
    ),
    EscapeProbe(
        "changing the user",
        """
for what in ("setuid", "setgid", "seteuid"):
    if hasattr(os, what) and attempt(lambda: getattr(os, what)(0) is None):
        reached()
if hasattr(os, "mknod") and attempt(lambda: os.mknod("disk", 0o60600, os.makedev(8, 0)) is None):
    reached()
if hasattr(os, "geteuid") and os.geteuid() == 0:
    reached()
tried()
""",
    ),
    EscapeProbe(
        "inherited open files",
        """
if attempt(os.read, 0, 1):
    reached()
for number in range(3, 256):
    if attempt(os.write, number, b"reached") or attempt(os.read, number, 1):
        reached()
tried()
""",
    ),
    EscapeProbe(
        "a link out of the workspace",
        """
attempt(os.symlink, SECRET, "link")
attempt(os.symlink, "/etc", "folder")
attempt(os.link, SECRET, "hard")
if attempt(lambda: open("link").read()) or attempt(lambda: open("hard").read()):
    reached()
tried()
""",
    ),
    EscapeProbe(
        "more processes than allowed",
        """
import threading
count = 0
try:
    for _ in range(200):
        if hasattr(os, "fork"):
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
        else:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except Exception:
    pass
if count >= 100:
    reached()
tried()
os._exit(0)
""",
        accepted_kills=(KillReason.MEMORY,),
    ),
    EscapeProbe(
        "more memory than allowed",
        """
held = []
while True:
    held.append(bytearray(8 << 20))
    if len(held) > 64:
        reached()
""",
        accepted_kills=(KillReason.MEMORY, KillReason.CRASHED),
    ),
    EscapeProbe(
        "more memory in many processes",
        """
for _ in range(6):
    if fork() == 0:
        held = bytearray(120 << 20)
        time.sleep(60)
if not hasattr(os, "fork"):
    tried()
    sys.exit()
time.sleep(3)
reached()
""",
        accepted_kills=(KillReason.MEMORY,),
    ),
    EscapeProbe(
        "more memory in the buffers of sockets",
        """
import socket
def grow(end):
    for option in (7, 8, 32, 33):  # the sizes of what is sent and received, and the same for the privileged
        attempt(end.setsockopt, socket.SOL_SOCKET, option, 1 << 30)
    end.setblocking(False)
    sent = 0
    while more := attempt(end.send, bytes(1 << 16)):
        sent += more
    return sent
def fill():
    out, held, sent = open(f"sent{os.getpid()}", "w", 1), [], 0
    while sent < 40 << 20 and (pair := attempt(socket.socketpair)):
        held.append(pair)
        sent += grow(pair[0]) + grow(pair[1])
        out.write(f"{sent}\\n")
    out.write("0\\n")
    time.sleep(60)
def sent():
    return [[int(line) for line in open(name).read().split()] for name in os.listdir(".")]
children = 12 if hasattr(os, "fork") else 0
for _ in range(children):
    if fork() == 0:
        fill()
ends = time.monotonic() + 8
while time.monotonic() < ends and sum(lines[-1:] == [0] for lines in sent()) < children:
    time.sleep(0.05)
if sum(max(lines) for lines in sent() if lines) > 256 << 20:
    reached()
tried()
os._exit(0)
""",
        accepted_kills=(KillReason.MEMORY,),
    ),
    EscapeProbe(
        "more memory in queues of the kernel",
        """
import socket
def named():
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("name")
        s.listen(4096)
        return True
def paired():
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ends[0].bind("pair")
    return True
def larger():
    import fcntl
    return fcntl.fcntl(os.pipe()[1], 1031, 1 << 20) > 1 << 16
def spliced():
    import ctypes
    page = ctypes.create_string_buffer(4096)
    span = (ctypes.c_void_p * 2)(ctypes.addressof(page), 4096)
    return call((278, 75), os.pipe()[1], ctypes.byref(span), 1, 0)
if attempt(named) or attempt(paired) or attempt(larger) or attempt(spliced):
    reached()
tried()
""",
    ),
    EscapeProbe(
        "more on disk than allowed",
        """
wrote = 0
for number in range(64):
    for folder in (".", "/tmp", "/dev/shm"):
        def write():
            with open(f"{folder}/{number}", "wb") as file:
                return file.write(b"x" * (1 << 20))
        wrote += attempt(write) or 0
if wrote > 40 << 20:
    import time
    time.sleep(2)  # a check from outside runs several times in this time
    reached()
tried()
""",
        accepted_kills=(KillReason.FILES,),
    ),
    EscapeProbe(
        "more files than allowed",
        """
for number in range(60_000):
    if attempt(lambda: open(f"f{number}", "w").close() or True) is None:
        break
else:
    reached()
tried()
""",
        accepted_kills=(KillReason.FILES, KillReason.TIME),
    ),
    EscapeProbe("printing without end", "while True: print('x' * 1000)", accepted_kills=(KillReason.OUTPUT,)),
    EscapeProbe(
        "taking longer than allowed",
        "time.sleep(30); reached()",
        (KillReason.TIME,),
        replace(PROBE_LIMITS, timeout_seconds=1),
    ),
)

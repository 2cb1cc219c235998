"""Addresses that must lead nowhere, and ones that are fine, with where each group comes from.

Shared by the tests of the guard: what is rejected as text, what is rejected for where it leads, and what passes.
"""

_LITERALS = """
    http://127.0.0.1/ http://127.0.0.1:80/ http://127.1/ http://127.0.1/ http://127.255.255.254/ http://0/ http://0.0.0.0/
    http://00000000/ http://2130706433/ http://017700000001/ http://0x7f000001/ http://0x7F.0.0.1/ http://0x7f.1/
    http://0177.0.0.1/ http://127.0.0.01/ http://0x7f.0x0.0x0.0x1/ http://127.0.0.1./ http://4294967295/ http://10.0.0.1/
    http://10.1/ http://172.16.0.1/ http://172.31.255.255/ http://192.168.0.1/ http://192.168.1/ http://100.64.0.1/
    http://169.254.0.1/ http://198.18.0.1/ http://192.0.0.192/ http://192.88.99.1/ http://224.0.0.1/ http://239.1.1.1/
    http://240.0.0.1/ http://255.255.255.255/ http://[::1]/ http://[::]/ http://[0:0:0:0:0:0:0:1]/
    http://[::127.0.0.1]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://[::ffff:0:127.0.0.1]/
    http://[64:ff9b::7f00:1]/ http://[64:ff9b::10.0.0.1]/ http://[64:ff9b:1::a9fe:a9fe]/ http://[2002:7f00:1::]/
    http://[2002:a00:1::1]/ http://[2001:0:7f00:1::]/ http://[2001:db8::1]/ http://[3fff::1]/ http://[5f00::1]/
    http://[fe80::1]/ http://[fec0::1]/ http://[fc00::1]/ http://[fd12:3456::1]/ http://[ff02::1]/ http://[100::1]/
    http://\u2460\u2461\u2466.0.0.1/ http://\uff11\uff12\uff17.0.0.1/ http://127\u30020\u30020\u30021/
    http://\u0661\u0662\u0667.0.0.1/ http://127\uff0e0\uff0e0\uff0e1/ http://1.1.1/ http://1.1.1.1.1/ http://256.1.1.1/
    http://1e3/ http://0x/
"""
LITERALS = tuple(_LITERALS.split())
"""Spellings of addresses that are not public, or of none."""

_METADATA = """
    http://169.254.169.254/latest/meta-data/ http://169.254.170.2/v2/credentials http://[fd00:ec2::254]/latest/
    http://2852039166/latest/ http://0xa9fea9fe/ http://0251.0376.0251.0376/ http://[::ffff:169.254.169.254]/
    http://[64:ff9b::169.254.169.254]/ http://100.100.100.200/latest/meta-data/ http://169.254.169.254:80/computeMetadata/v1/
"""
METADATA = tuple(_METADATA.split())
"""Where clouds tell machines their secrets."""

PARSERS = (
    "http://public.example@127.0.0.1/",
    "http://127.0.0.1@public.example/",
    "http://public.example:80@127.0.0.1/",
    "http://public.example\\@127.0.0.1/",
    "http://127.0.0.1\\.public.example/",
    "http://public.example%00.evil/",
    "http://public.example%2f@127.0.0.1/",
    "http://127.0.0.1%23.public.example/",
    "http:/127.0.0.1/",
    "http:127.0.0.1/",
    "http:///127.0.0.1/",
    "//127.0.0.1/",
    "http://[::1]public.example/",
    "http://[::1%25lo]/",
    "http://public.example:0/",
    "http://public.example:00080/",
    "http://public.example:65616/",
    "http://public.example:+80/",
    "http://public.example:8\u00b2/",
    "http://public.example: 80/",
    "http://public example/",
    "http://public.example\t/",
    "http://pub\u00adlic.example/",
    "http://\u202epublic.example/",
    "http://.public.example/",
    "http://public..example/",
    "http://-public.example/",
    "http://" + "a" * 64 + ".example/",
    "http://\u0969.public.example/",
    "http://public.example/a\\b",
    "http://?q=127.0.0.1",
    "http://#127.0.0.1",
    "http://public.example/" + "a" * 3000,
    "",
)
"""What two readers of addresses would take for two hosts, or for none."""

SMUGGLES = (
    "file:///etc/passwd",
    "gopher://public.example:6379/_FLUSHALL",
    "dict://public.example:11211/stats",
    "ftp://public.example/",
    "ldap://public.example/",
    "jar:http://public.example!/",
    "data:text/html,hello",
    "javascript:alert(1)",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
    "http://public.example/\r\nX-Injected: 1",
    "http://public.example/ HTTP/1.1\r\nHost: 127.0.0.1",
    "http://public.example:6379/",
    "http://public.example:22/",
    "https://public.example:9200/_search",
    "http://public.example:8080/",
)
"""Other protocols, other ports, and lines smuggled into a request."""

ANSWERS: dict[str, tuple[str, ...]] = {
    "loopback.example": ("127.0.0.1",),
    "anyhost.example": ("0.0.0.0",),
    "private-a.example": ("10.2.3.4",),
    "private-b.example": ("172.20.0.5",),
    "private-c.example": ("192.168.7.7",),
    "carrier.example": ("100.127.255.254",),
    "link-local.example": ("169.254.169.254",),
    "benchmarking.example": ("198.19.0.1",),
    "documentation.example": ("192.0.2.1",),
    "documentation-b.example": ("198.51.100.7",),
    "documentation-c.example": ("203.0.113.9",),
    "multicast.example": ("224.0.0.251",),
    "reserved.example": ("250.0.0.1",),
    "broadcast.example": ("255.255.255.255",),
    "protocol.example": ("192.0.0.8",),
    "relay.example": ("192.88.99.2",),
    "six-loopback.example": ("::1",),
    "six-mapped.example": ("::ffff:10.0.0.1",),
    "six-compatible.example": ("::10.0.0.1",),
    "six-nat.example": ("64:ff9b::c0a8:101",),
    "six-to-four.example": ("2002:c0a8:101::1",),
    "six-teredo.example": ("2001:0:4136:e378:8000:63bf:3fff:fdd2",),
    "six-local.example": ("fd00::5",),
    "six-link.example": ("fe80::5%eth0",),
    "six-site.example": ("fec0::5",),
    "six-documentation.example": ("2001:db8::5",),
    "mixed.example": ("93.184.216.34", "127.0.0.1"),
    "mixed-last.example": ("93.184.216.34", "2606:2800:220:1::1", "::1"),
    "mixed-first.example": ("10.0.0.1", "93.184.216.34"),
    "nothing.example": (),
    "nonsense.example": ("not an address",),
    "localhost": ("127.0.0.1", "::1"),
    "metadata.google.internal": ("169.254.169.254",),
}
"""What names answer, so that each of them must be rejected."""

_GOOD = """
    http://public.example/ https://public.example/ https://public.example:443/ http://public.example:80/a/b
    HTTP://PUBLIC.EXAMPLE/ https://public.example./ https://public.example https://public.example?q=1
    https://public.example/#part https://public.example/a%20b https://public.example/%E4?x=%2F
    https://public.example/\u00e4\u00f6\u00fc https://public.example/?q=\u65e5\u672c https://sub.public.example/
    https://a-b.public.example/ https://x_y.public.example/ https://xn--bcher-kva.public.example/
    https://b\u00fccher.public.example/ https://public.example/a;b=c,d https://public.example/a/../b
    https://public.example//double https://public.example/@user https://public.example/a:b
    https://public.example/?u=http://127.0.0.1/ https://8.8.8.8/ https://1.1.1.1:443/ https://[2606:4700::1111]/
    https://[2606:4700:0:0:0:0:0:1111]:443/ https://[64:ff9b::8.8.8.8]/ https://127.0.0.1.public.example/
    https://3com.public.example/ https://0x7f.public.example/
"""
GOOD = tuple(_GOOD.split())
"""Ordinary addresses. Names under public.example have a public address."""

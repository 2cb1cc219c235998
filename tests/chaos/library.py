"""A small library for runs of the real graph, in plain prose."""

DOCUMENTS = {
    "lighthouses.md": """# Lighthouses

A lighthouse flashes so that mariners can tell it from other lights. Each lighthouse has its own rhythm of flashes,
called its characteristic, and the characteristic is printed on the chart. A mariner who counts the seconds between
flashes knows which light is in sight.

## How the flash is made

The lamp itself burns steadily. The flash is made by rotating the lens around the lamp, so that each panel of the lens
sweeps a beam across the horizon. Early lenses rotated on rollers; later ones floated in a bath of mercury, which
let a heavy lens turn with little friction.

## Range

The range of a lighthouse depends on the height of its lamp and on the brightness of its beam. A lamp forty metres above
the sea can be seen from about thirteen nautical miles by an observer at the waterline.
""",
    "fresnel-lenses.md": """# The Fresnel lens

A Fresnel lens is a lens cut into rings. A plain lens of the same power would be thick and heavy; a Fresnel lens removes
the glass that does not bend light and keeps only the curved surfaces, and so it saves glass and weight.

## Why it saves light

A bare flame sends light in every direction, and most of it is lost to the sky and the ground. The rings of a Fresnel
lens gather the light that leaves the lamp at wide angles and bend it into a horizontal beam. Prisms above and below the
central rings reflect light that would otherwise be lost. A first-order lens sends most of the light of its lamp to the
horizon.

## Orders

Fresnel lenses were made in orders. A lens of the first order stands about two and a half metres high; a lens of the
sixth order is small enough for a harbour light.
""",
    "keepers.md": """# Keepers

Keepers trimmed the wicks, polished the lens and wound the clockwork that turned it. The clockwork was driven by a
weight that fell inside the tower, and it had to be wound every few hours through the night. Electric light and
automatic lamp changers made keepers unnecessary, and most towers were automated in the twentieth century.
""",
    "fog-signals.md": """# Fog signals

In fog a light is of little use, and stations sounded bells, guns, sirens or diaphones. A fog signal has a
characteristic of its own, like a lighthouse, so that it can be told from other signals by counting the seconds of
silence between its blasts.
""",
}

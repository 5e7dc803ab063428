"""Areas of drawn polygons by shapely, for ../areas.rs: python areas.py > areas.json

Random rings that cross themselves, with holes and exclusions; everything in level-0 px.
"""

import json
import math
import random

import shapely
from shapely.geometry import Polygon

random.seed(11)


def ring(cx, cy, size, n, rough):
    points = []
    for k in range(n):
        a = 2 * math.pi * k / n
        r = size * (1 + rough * (random.random() - 0.5))
        points.append([round(cx + r * math.cos(a), 3), round(cy + r * math.sin(a), 3)])
    return points


def valid(rings):
    outer, *holes = rings
    # Stars around a centre with noise in the radius do not cross themselves.
    shape = Polygon(outer)
    assert shape.is_valid
    for hole in holes:
        assert Polygon(hole).is_valid
        shape = shape.difference(Polygon(hole))
    return shape


cases = []
for _ in range(40):
    def one(lo, hi):
        c = (random.uniform(10_000, 90_000), random.uniform(10_000, 90_000))
        size = random.uniform(lo, hi)
        rings = [ring(*c, size, random.randint(3, 60), 0.6)]
        for _ in range(random.randint(0, 2)):
            at = (c[0] + random.uniform(-0.3, 0.3) * size, c[1] + random.uniform(-0.3, 0.3) * size)
            rings.append(ring(*at, size * 0.2, random.randint(3, 12), 0.3))
        return rings

    include = [one(5_000, 30_000) for _ in range(random.randint(1, 5))]
    exclude = [one(2_000, 15_000) for _ in range(random.randint(0, 3))]
    slide = shapely.box(0, 0, 100_000, 100_000)
    out = shapely.union_all([valid(r) for r in exclude]).intersection(slide)
    each = [valid(r).intersection(slide).difference(out) for r in include]
    cases.append({
        "include": include,
        "exclude": exclude,
        "each": [e.area for e in each],
        "all": shapely.union_all(each).area,
        "excluded": out.area,
    })
print(json.dumps({"shapely": shapely.__version__, "cases": cases}))

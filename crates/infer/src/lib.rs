//! ONNX models behind the plain-buffer ports.

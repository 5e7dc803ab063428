//! Damaged files of weights: an answer or a typed error, never a panic.

use crate::damage::attack;

#[test]
fn weights() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("w.safetensors");
    let header = br#"{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#;
    let mut file = std::fs::File::create(&plain).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header).unwrap();
    file.write_all(&[0; 16]).unwrap();
    let golden = testkit::workspace().join("crates/net/tests/golden");
    attack(&[plain, golden.join("legacy.pth"), golden.join("zip.pth")], |path| {
        let _ = net::read_weights(path, None);
    });
}

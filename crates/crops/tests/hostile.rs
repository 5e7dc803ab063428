//! Corpora whose shards contain wrong values, with digests that match.

use crops::{Columns, Corpus};

#[test]
fn a_shard_that_breaks_the_parquet_reader_is_an_error() {
    for name in ["corpus_62", "corpus_149"] {
        let Some(dir) = testkit::data(&format!("hostile/{name}")) else { continue };
        let read = || {
            let corpus = Corpus::open(&dir)?;
            corpus.crops(Columns::All)?.collect::<Result<Vec<_>, _>>()
        };
        let e = read().unwrap_err();
        assert!(e.to_string().contains("shard-00000.parquet"), "{name}: {e}");
        let e = Corpus::open(&dir).unwrap().verify().unwrap_err();
        assert!(e.to_string().contains("shard-00000.parquet"), "{name}: {e}");
    }
}

//! Reading on other threads while the network runs.

use crate::encoder::Frozen;
use crate::error::FeatureError;
use crate::row::Row;
use crate::table::Table;
use base::progress::Listener;
use mitosis::RgbTile;
use std::sync::mpsc::sync_channel;

/// What is embedded at once.
pub(crate) type Batch = Vec<(Row, RgbTile)>;

/// Batches that are read before the network asks for them.
const AHEAD: usize = 2;

/// Embeds batches in their order into `table`, and reports how many tiles of `total` are done.
pub(crate) fn run(
    encoder: &mut Frozen,
    table: &mut Table,
    batches: impl Iterator<Item = Result<Batch, FeatureError>> + Send,
    total: u64,
    listener: &mut dyn Listener,
) -> Result<(), FeatureError> {
    listener.update(0, total);
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel(AHEAD);
        scope.spawn(move || {
            for batch in batches {
                let last = batch.is_err();
                // Nobody listens any more after a failure of the network.
                if send.send(batch).is_err() || last {
                    break;
                }
            }
        });
        for batch in receive {
            let (rows, tiles): (Vec<_>, Vec<_>) = batch?.into_iter().unzip();
            let values = encoder.network.features(&tiles)?;
            table.extend(rows, &values);
            listener.update(table.len() as u64, total);
        }
        Ok(())
    })
}

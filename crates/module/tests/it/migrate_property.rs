//! Property tests with manifests in many styles and with malformed texts: a migration preserves the existing
//! content and its meaning, and is idempotent.

use module::document::parse_yaml;
use module::manifest::Manifest;
use module::migrate;
use module::{FileMap, Format};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The style in which a manifest is written.
#[derive(Clone, Debug)]
struct Style {
    root_indent: usize,
    indent: usize,
    flow_root: bool,
    flow_sections: bool,
    dash_at_key: bool,
    comments: bool,
    blank_lines: bool,
    returns: bool,
    final_newline: bool,
    quotes: bool,
}

fn style() -> impl Strategy<Value = Style> {
    let flags = prop::collection::vec(any::<bool>(), 8);
    (0..3usize, 1..6usize, flags).prop_map(|(root_indent, indent, flags)| Style {
        root_indent,
        indent,
        flow_root: flags[0] && flags[1] && flags[2],
        flow_sections: flags[1],
        dash_at_key: flags[2],
        comments: flags[3],
        blank_lines: flags[4],
        returns: flags[5],
        final_newline: flags[6],
        quotes: flags[7],
    })
}

/// A section that a manifest may or may not have, in one of its forms.
fn section(key: &'static str, forms: Vec<Value>) -> impl Strategy<Value = Option<(String, Value)>> {
    prop::option::of(prop::sample::select(forms))
        .prop_map(move |form| form.map(|form| (String::from(key), form)))
}

/// Sections about permissions.
fn conduct() -> Vec<BoxedStrategy<Option<(String, Value)>>> {
    vec![
        section("excludes", vec![json!([]), json!(["a b", "c"]), json!(["修改"])]).boxed(),
        section(
            "policies",
            vec![
                json!({ "network": "deny" }),
                json!({ "network_allowed": false, "tools_allowed": false }),
                json!({ "tools_allowed": false }),
                json!({ "tools_allowed": true, "network_allowed": true }),
                json!({ "network": "deny", "network_allowed": false, "side_effects": "allow" }),
                json!({}),
            ],
        )
        .boxed(),
        section(
            "tools",
            vec![
                json!({ "policy": "allow_by_default", "denied": ["shell"] }),
                json!({ "allowed": ["search", "read file"] }),
                json!(null),
            ],
        )
        .boxed(),
    ]
}

fn manifest() -> impl Strategy<Value = Map<String, Value>> {
    let mut sections = conduct();
    sections.extend([
        section(
            "tier",
            vec![
                json!("exec"),
                json!("decision"),
                json!("exploration"),
                json!(null),
            ],
        )
        .boxed(),
        section(
            "overflow",
            vec![json!({ "enabled": true, "max_items": 3 }), json!(null)],
        )
        .boxed(),
        section("enums", vec![json!({ "strategy": "strict" })]).boxed(),
        section("failure", vec![json!({ "contract": "throw" })]).boxed(),
        section(
            "io",
            vec![
                json!({ "input": "./schema.json#/input", "output": "./schema.json#/output" }),
                json!({ "error": "schema.json#/error" }),
                json!({}),
            ],
        )
        .boxed(),
        section(
            "compat",
            vec![json!({ "schema_output_alias": "output" }), json!({}), json!(null)],
        )
        .boxed(),
        section("context", vec![json!("fork"), json!({ "mode": "main" })]).boxed(),
        section(
            "tests",
            vec![json!(["tests/a.input.json -> tests/a.expected.json"])],
        )
        .boxed(),
        section(
            "x-own",
            vec![
                json!({ "deep": { "er": [1, 2.5, true, null, "# no comment"] } }),
                json!("a: b"),
            ],
        )
        .boxed(),
    ]);
    (sections, any::<prop::sample::Index>()).prop_map(|(sections, at)| {
        let identity = [
            (String::from("name"), json!("reviewer")),
            (String::from("version"), json!("2.1.0")),
            (String::from("responsibility"), json!("judge code: and say why")),
        ];
        let mut entries: Vec<_> = sections.into_iter().flatten().collect();
        let at = at.index(entries.len() + 1);
        entries.splice(at..at, identity);
        entries.into_iter().collect()
    })
}

/// Writes a manifest in a style. Comments are numbered, so that their order can be checked.
struct Writer<'a> {
    style: &'a Style,
    comments: usize,
}

impl Writer<'_> {
    fn document(&mut self, manifest: &Map<String, Value>) -> String {
        let mut text = if self.style.flow_root {
            format!("{}\n", self.flow(&Value::Object(manifest.clone())))
        } else {
            let indent = " ".repeat(self.style.root_indent);
            let mut text = String::new();
            for (key, value) in manifest {
                if self.style.blank_lines {
                    text.push('\n');
                }
                if self.style.comments {
                    text.push_str(&format!("{indent}{}\n", self.comment()));
                }
                text.push_str(&self.entry(key, value, self.style.root_indent));
            }
            if self.style.comments {
                text.push_str(&format!("{}\n", self.comment()));
            }
            text
        };
        if !self.style.final_newline {
            text.truncate(text.trim_end().len());
        }
        if self.style.returns {
            text.replace('\n', "\r\n")
        } else {
            text
        }
    }

    fn comment(&mut self) -> String {
        self.comments += 1;
        format!("# remark {} 注", self.comments)
    }

    fn line_end(&mut self) -> String {
        if self.style.comments {
            format!("   {}\n", self.comment())
        } else {
            String::from("\n")
        }
    }

    fn entry(&mut self, key: &str, value: &Value, indent: usize) -> String {
        let lead = " ".repeat(indent);
        let key = if self.style.quotes {
            format!("\"{key}\"")
        } else {
            String::from(key)
        };
        match value {
            Value::Object(map) if !map.is_empty() && !self.style.flow_sections => {
                let mut text = format!("{lead}{key}:{}", self.line_end());
                for (name, value) in map {
                    text.push_str(&self.entry(name, value, indent + self.style.indent));
                }
                text
            }
            Value::Array(list) if !list.is_empty() && !self.style.flow_sections => {
                let deeper = if self.style.dash_at_key {
                    indent
                } else {
                    indent + self.style.indent
                };
                let mut text = format!("{lead}{key}:{}", self.line_end());
                for item in list {
                    let item = self.flow(item);
                    text.push_str(&format!("{}- {item}{}", " ".repeat(deeper), self.line_end()));
                }
                text
            }
            Value::Null if self.style.quotes => format!("{lead}{key}:{}", self.line_end()),
            value => format!("{lead}{key}: {}{}", self.flow(value), self.line_end()),
        }
    }

    fn flow(&self, value: &Value) -> String {
        match value {
            Value::Object(map) => {
                let entries: Vec<_> = map
                    .iter()
                    .map(|(key, value)| format!("{key}: {}", self.flow(value)))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
            Value::Array(list) => {
                let items: Vec<_> = list.iter().map(|item| self.flow(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::String(text)
                if !self.style.quotes && text.chars().all(|c| c.is_alphanumeric() || c == '_') =>
            {
                text.clone()
            }
            other => other.to_string(),
        }
    }
}

const SCHEMA: &str = r##"{
  "input": {"type": "object"},
  "output": {"type": "object", "properties": {"again": {"$ref": "#/output"}}}
}"##;

fn files(manifest: &str) -> FileMap {
    [
        ("module.yaml", manifest),
        ("schema.json", SCHEMA),
        ("prompt.md", "Judge the code.\n"),
    ]
    .into_iter()
    .collect()
}

/// Keys that a migration may write to.
const TOUCHED: &[&str] = &[
    "tier",
    "schema_strictness",
    "excludes",
    "policies",
    "tools",
    "overflow",
    "enums",
    "failure",
    "io",
    "compat",
    "context",
    "response",
    "modalities",
];

proptest! {
    #![proptest_config(crate::property::cases(128))]

    #[test]
    fn manifest_of_any_style_is_preserved(manifest in manifest(), style in style(), newer in any::<bool>()) {
        let target = if newer { Format::V2_5 } else { Format::V2_2 };
        let mut writer = Writer { style: &style, comments: 0 };
        let text = writer.document(&manifest);
        prop_assume!(parse_yaml(&text).ok() == Some(Value::Object(manifest.clone())));
        let plan = migrate::plan(&files(&text), target);
        let plan = plan.unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
        let after = plan.files.text("module.yaml").expect("a manifest");
        let Ok(Value::Object(read)) = parse_yaml(after) else { panic!("not a manifest:\n{after}") };

        for (key, value) in manifest.iter().filter(|(key, _)| !TOUCHED.contains(&key.as_str())) {
            prop_assert_eq!(read.get(key), Some(value), "{}", after);
        }
        let mut rest = after;
        for number in 1..=writer.comments {
            let comment = format!("# remark {number} ");
            // A comment is lost only with its removed line: the old spelling of `tools_allowed`.
            match rest.find(&comment) {
                Some(at) => rest = rest.get(at..).unwrap_or_default(),
                None => prop_assert!(text.contains("tools_allowed") || text.contains("network_allowed"), "{comment} of\n{text}\nis lost in\n{after}"),
            }
        }
        if style.returns && text.contains('\n') {
            prop_assert!(!after.replace("\r\n", "").contains('\n'), "{:?}", after);
        }

        let (old, new) = (Manifest::read(&manifest), Manifest::read(&read));
        for policy in ["network", "side_effects", "filesystem_write"] {
            prop_assert_eq!(old.policies.access(policy), new.policies.access(policy), "{}", after);
        }
        for tool in ["shell", "search", "other"] {
            prop_assert_eq!(old.tools.permits(tool), new.tools.permits(tool), "{}", after);
        }
        prop_assert_eq!(old.tier, new.tier);
        prop_assert_eq!(old.overflow, new.overflow);
        prop_assert_eq!(old.context, new.context);

        let again = migrate::plan(&plan.files, target).expect("a plan");
        prop_assert!(again.is_empty(), "{:#?}", again.changes);
    }
}

/// Manifest entries in unusual forms.
const ENTRIES: &[&str] = &[
    "version: 1.0.0\n",
    "responsibility: x\n",
    "responsibility: |\n  x\n\n\n",
    "'responsibility': >+\n  x\n\n",
    "tier: exec\n",
    "tier:\n",
    "\"tier\":   exploration   # c\n",
    "policies:\n  network_allowed: false\n  tools_allowed: false # c\n",
    "policies:\n\n  # c\n  tools_allowed: false\n\n  # d\n",
    "policies: {tools_allowed: false}\n",
    "policies: { a_allowed: true , b: deny, }\n",
    "policies: {\n  network_allowed: true, # c\n  tools_allowed: false\n  }\n",
    "policies: !!map\n  network_allowed: false\n",
    "policies: &p\n  network_allowed: false\nx-p: *p\n",
    "tools: &t {allowed: [a, b]}\nx-t: *t\n",
    "tools:\n- a\n",
    "tools: {policy: allow_by_default}\n",
    "io: {output: './schema.json#/output'}\n",
    "io:\n      output: schema.json#/output\n",
    "io:\n  \"data\": '#/output'\n  # c\n",
    "io: {}\n",
    "? complex\n: value\n",
    "compat: !!map {}\n",
    "compat: &c\n  runtime_auto_wrap: false\n",
    "x-base: &base\n  network: deny\nx-merged:\n  <<: *base\n  more: 1\n",
    "x: |+\n  text\n\n",
    "y: >-\n  folded\n\n  text\n",
    "# comment\n",
    "  # indented\n",
    "excludes: [\n  a,\n  b # c\n]\n",
    "excludes:\n- a\n-  b\n",
    "context: fork\n",
    "context: \"fork\" # c\n",
    "tests: []\n",
    "tests:\n  - tests/a.input.json -> tests/a.expected.json\n",
    "'quoted key': 1\n",
    "\n\n",
    "overflow: ~\n",
    "overflow: {enabled: false}   \n",
    "enums: {strategy: strict,}\n",
    "é中: 中 # 注\n",
    "failure:   # c\n    contract:   throw\n",
];

#[test]
fn any_manifest_is_migrated_or_refused() {
    let migrated = AtomicUsize::new(0);
    bolero::check!()
        .with_type::<Vec<u8>>()
        .with_iterations(150)
        .with_max_len(12)
        .for_each(|choice| {
            let mut text = String::from("name: reviewer\n");
            let mut keys = Vec::new();
            for byte in choice {
                let entry = ENTRIES[usize::from(*byte) % ENTRIES.len()];
                let key = entry
                    .split(':')
                    .next()
                    .unwrap_or_default()
                    .trim_matches(['\'', '"']);
                if entry.starts_with(['#', ' ', '\n']) || !keys.contains(&key) {
                    keys.push(key);
                    text.push_str(entry);
                }
            }
            if choice.first().is_some_and(|byte| byte % 8 == 0) {
                text.truncate(text.trim_end().len());
            }
            for target in [Format::V2_2, Format::V2_5] {
                if let Ok(plan) = migrate::plan(&files(&text), target) {
                    migrated.fetch_add(1, Ordering::Relaxed);
                    let again = migrate::plan(&plan.files, target);
                    let again = again.unwrap_or_else(|refusal| panic!("{refusal}\n{text:?}"));
                    assert!(again.is_empty(), "{text:?}: {:#?}", again.changes);
                }
            }
        });
    assert!(migrated.into_inner() >= 50, "nearly every manifest was refused");
}

/// A schema of relevant keywords in arbitrary positions.
fn schema(choice: &mut std::slice::Iter<'_, u8>, depth: usize) -> Value {
    const KEYS: &[&str] = &[
        "output",
        "data",
        "meta",
        "error",
        "input",
        "required",
        "properties",
        "$ref",
        "explain",
        "code",
        "allOf",
        "oneOf",
        "$defs",
        "extensions",
        "rationale",
        "maxLength",
        "a\"b",
        "additionalProperties",
        "$schema",
        "items",
    ];
    const WORDS: &[&str] = &[
        "#/output",
        "#/meta",
        "#/$defs/x",
        "#",
        "rationale",
        "confidence",
        "object",
        "",
    ];
    let mut next = || usize::from(choice.next().copied().unwrap_or_default());
    let kind = if depth == 0 { 5 } else { next() % 10 };
    match kind {
        0 => json!(WORDS[next() % WORDS.len()]),
        1 => json!(next()),
        2 => json!(next() % 2 == 0),
        3 => Value::Null,
        4 => {
            let length = next() % 3;
            (0..length).map(|_| schema(choice, depth + 1)).collect()
        }
        _ if depth > 5 => json!({}),
        _ => {
            let length = next() % 5 + usize::from(depth == 0);
            let mut map = Map::new();
            for _ in 0..length {
                let key = KEYS[usize::from(choice.next().copied().unwrap_or_default()) % KEYS.len()];
                map.insert(String::from(key), schema(choice, depth + 1));
            }
            Value::Object(map)
        }
    }
}

#[test]
fn any_schema_is_migrated_or_refused() {
    let manifest = "{name: a, version: 1.0.0, responsibility: x, tier: decision, excludes: [y],\
                    overflow: {enabled: true}, enums: {strategy: strict}}";
    bolero::check!()
        .with_type::<Vec<u8>>()
        .with_iterations(200)
        .with_max_len(96)
        .for_each(|choice| {
            let schema = schema(&mut choice.iter(), 0);
            let mut files = files(manifest);
            let pretty = serde_json::to_string_pretty(&schema).unwrap_or_default();
            for text in [schema.to_string(), pretty] {
                files.insert(
                    "schema.json",
                    module::file_map::Entry::Read(text.clone().into_bytes()),
                );
                let plan = migrate::plan(&files, Format::V2_5);
                let plan = plan.unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
                let again = migrate::plan(&plan.files, Format::V2_5);
                let again = again.unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
                assert!(again.is_empty(), "{text}: {:#?}", again.changes);
            }
        });
}

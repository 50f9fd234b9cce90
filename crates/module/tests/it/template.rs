//! Every generated module is valid.

use module::manifest::{Modality, Tier};
use module::scaffold::{Blueprint, OutputField, write};
use module::{FileMap, Format, Strict, check, load, migrate};

fn blueprints() -> Vec<Blueprint> {
    let media = [
        vec![],
        vec![Modality::Text],
        vec![Modality::Image],
        vec![Modality::Audio],
        vec![Modality::Video],
        vec![Modality::Document],
        vec![
            Modality::Document,
            Modality::Image,
            Modality::Audio,
            Modality::Video,
        ],
    ];
    let mut all = Vec::new();
    for tier in [Tier::Exec, Tier::Decision, Tier::Exploration] {
        for format in [Format::V2_2, Format::V2_5] {
            for input in &media {
                all.push(Blueprint {
                    name: String::from("night-reader"),
                    title: None,
                    responsibility: String::from("say what: \"it\" is, 用一句话"),
                    tier,
                    format,
                    input: input.clone(),
                    output: Vec::new(),
                });
            }
        }
    }
    let fields = [
        "vendor:string",
        "items:list",
        "kind:bill|offer",
        "note:string?",
        "größe:integer",
    ];
    let fields: Vec<_> = fields
        .iter()
        .map(|text| OutputField::parse(text).expect("a field"))
        .collect();
    let example = serde_json::json!({
        "vendor": "Acme", "total": 12.5, "paid": false, "due": null, "tags": [],
        "lines": [{"text": "a ${b}", "`$x": 1}, {"text": "b", "tax": {"rate": 7}}], "rationale": "It says so.",
    });
    let inferred = OutputField::of_example(&example).expect("fields");
    for (blueprint, output) in all
        .clone()
        .into_iter()
        .zip([fields, inferred].into_iter().cycle())
    {
        all.push(Blueprint {
            title: Some(String::from("发票审核")),
            output,
            ..blueprint
        });
    }
    all
}

fn complaints(files: &FileMap, strict: Strict) -> Vec<String> {
    let report = check(files, strict).report;
    report
        .iter()
        .map(|diagnostic| format!("{diagnostic:?}"))
        .collect()
}

#[test]
fn new_module_has_no_strict_diagnostics() {
    for blueprint in blueprints() {
        let files = write(&blueprint);
        let module = load(&files).module.expect("it loads");
        let strict = match module.format {
            Format::V2_5 => Strict::V25,
            _ => Strict::V22,
        };
        assert_eq!(complaints(&files, strict), Vec::<String>::new(), "{blueprint:?}");
        assert_eq!(module.manifest.tier, blueprint.tier);
        assert_eq!(module.manifest.responsibility, blueprint.responsibility);
        assert_eq!(module.tests.len(), 1);
        let media = blueprint.input.iter().any(|kind| *kind != Modality::Text);
        assert_eq!(
            module.format == Format::V2_5,
            media || blueprint.format == Format::V2_5
        );
    }
}

#[test]
fn new_module_needs_no_migration() {
    for blueprint in blueprints() {
        let files = write(&blueprint);
        let format = load(&files).module.expect("it loads").format;
        let plan = migrate::plan(&files, format).expect("a plan");
        assert!(plan.is_empty(), "{:#?}", plan.changes);
    }
}

#[test]
fn golden_tests_match_the_contract() {
    use module::schema::Section;
    for blueprint in blueprints() {
        let files = write(&blueprint);
        let contract = load(&files).module.expect("it loads").contract;
        let json = |path: &str| -> serde_json::Value {
            serde_json::from_slice(files.bytes(path).expect("it is there")).expect("it is JSON")
        };
        let fits = |section: Section, value: &serde_json::Value| {
            let validator = contract
                .validator(section)
                .expect("it compiles")
                .expect("a section");
            assert!(validator.is_valid(value), "{section:?} of {blueprint:?}: {value}");
        };
        fits(Section::Input, &json("tests/example.input.json"));
        let example = &json("tests/example.expected.json")["$example"];
        fits(Section::Data, &example["data"]);
        fits(Section::Meta, &example["meta"]);
    }
}

#[test]
fn template_files() {
    let blueprint = Blueprint {
        name: String::from("photo-captioner"),
        responsibility: String::from("write a caption for a photo"),
        tier: Tier::Decision,
        format: Format::V2_5,
        input: vec![Modality::Image],
        title: None,
        output: Vec::new(),
    };
    let files = write(&blueprint);
    for file in ["module.yaml", "prompt.md", "schema.json"] {
        insta::assert_snapshot!(format!("template_{file}"), files.text(file).expect("a text"));
    }
}

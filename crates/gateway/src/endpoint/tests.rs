use std::collections::BTreeSet;

use super::document;
use crate::route::operations;

#[test]
fn every_endpoint_is_described_once() {
    let operations = operations();
    let ids: BTreeSet<_> = operations.iter().map(|operation| operation.id).collect();
    assert_eq!(ids.len(), operations.len(), "duplicate id");
    let document = document(&operations);
    for operation in &operations {
        let verb = format!("{:?}", operation.method).to_lowercase();
        let path = super::openapi::render(operation.path);
        let described = &document["paths"][&path][&verb];
        assert_eq!(described["operationId"], operation.id);
        assert!(!operation.summary.is_empty(), "{} has no summary", operation.id);
        for parameter in &operation.parameters {
            let place = format!("{{{}}}", parameter.name);
            let in_path = path.contains(&place);
            assert_eq!(
                in_path,
                parameter.place == super::ParameterIn::Path,
                "{}",
                parameter.name
            );
        }
        let parts = operation.path.matches('{').count();
        let described = operation
            .parameters
            .iter()
            .filter(|p| p.place == super::ParameterIn::Path)
            .count();
        assert_eq!(parts, described, "{}", operation.path);
    }
}

#[test]
fn references_in_document_resolve() {
    let document = document(&operations());
    let text = document.to_string();
    for reference in text.split(r##""$ref":"#"##).skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

//! The OpenAPI document as an HTML page: one file without external scripts, fonts or images.

use std::fmt::Write as _;

use serde_json::{Map, Value};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
h2{margin-top:2.5rem;font:600 1.05rem ui-monospace,monospace;border-top:1px solid #ddd;padding-top:1rem}\
h2 b{color:#06c}table{border-collapse:collapse;width:100%}td{vertical-align:top;padding:.2rem .8rem .2rem 0}\
td:first-child{font-family:ui-monospace,monospace;white-space:nowrap}h3{font-size:.9rem;margin:1rem 0 .2rem}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}h2{border-color:#444}h2 b{color:#6af}}";

pub(crate) fn page(document: &Value) -> String {
    let title = text(&document["info"]["title"]);
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}: HTTP API</title><style>{STYLE}</style><h1>{title}</h1><p>{}</p>\
         <p>Machine-readable: <a href=\"/openapi.json\">openapi.json</a>.</p>",
        text(&document["info"]["description"])
    );
    let nothing = Map::new();
    let paths = document["paths"].as_object().unwrap_or(&nothing);
    for (path, verbs) in paths {
        for (verb, operation) in verbs.as_object().unwrap_or(&nothing) {
            section(&mut html, path, verb, operation);
        }
    }
    html.push_str("</html>\n");
    html
}

fn section(html: &mut String, path: &str, verb: &str, operation: &Value) {
    let (verb, path) = (escape(&verb.to_uppercase()), escape(path));
    // Writing to a string cannot fail.
    let mut put = |text: std::fmt::Arguments<'_>| html.write_fmt(text).unwrap_or_default();
    put(format_args!(
        "<h2 id=\"{0}\"><b>{verb}</b> {path}</h2><p>{1}</p>",
        text(&operation["operationId"]),
        text(&operation["summary"])
    ));
    let parameters = operation["parameters"].as_array();
    if let Some(parameters) = parameters {
        put(format_args!("<h3>Parameters</h3><table>"));
        for parameter in parameters {
            put(format_args!(
                "<tr><td>{}</td><td>{}, {}</td></tr>",
                text(&parameter["name"]),
                text(&parameter["in"]),
                text(&parameter["description"])
            ));
        }
        put(format_args!("</table>"));
    }
    put(format_args!("<h3>Responses</h3><table>"));
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        let description = text(&answer["description"]).replace("; ", "<br>");
        put(format_args!(
            "<tr><td>{}</td><td>{description}</td></tr>",
            escape(status)
        ));
    }
    put(format_args!("</table>"));
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

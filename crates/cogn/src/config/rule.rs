//! Rules that the JSON schema cannot express: references to names in other sections, and keys that require or
//! exclude each other.

use engine::route::Policy;
use ir::envelope::PolicySpec;
use module::diagnostic::nearest;
use serde_json::Value;
use store::StoreUrl;

use super::known_secrets::is_secret_name;
use super::layer::{Origin, escape};
use super::merged::Merged;
use super::preset::Preset;
use super::schema::Problem;
use super::settings::Program;

/// Headers that contain secrets; their values are not allowed in a configuration file.
const SECRET_HEADERS: [&str; 6] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
];

pub(super) fn rules(merged: &Merged) -> Vec<Problem> {
    let mut found = Problems {
        merged,
        problems: Vec::new(),
    };
    found.credentials();
    found.backends();
    found.routing();
    found.gate();
    found.network();
    found.aliases();
    found.store();
    found.bindings();
    found.problems
}

struct Problems<'m> {
    merged: &'m Merged,
    problems: Vec<Problem>,
}

impl Problems<'_> {
    fn credentials(&mut self) {
        for (index, credential) in self.list("credentials").iter().enumerate() {
            let pointer = format!("/credentials/{index}");
            match (credential.get("env"), credential.get("file")) {
                (None, None) => self.report(&pointer, "either `env` or `file` is required"),
                (Some(_), Some(_)) => self.report(&pointer, "`env` and `file` cannot be combined"),
                _ => {}
            }
        }
    }

    fn store(&mut self) {
        let metadata = self
            .merged
            .tree
            .get("store")
            .and_then(|store| store["metadata"].as_str());
        if let Some(Err(reason)) = metadata.map(str::parse::<StoreUrl>) {
            self.report("/store/metadata", reason);
        }
    }

    /// A secret is sent only to the address that it was configured for: one file must name both, so that a later
    /// file cannot redirect the secret of an earlier one. Variables and flags may change either.
    fn bindings(&mut self) {
        let mut pairs = vec![
            (
                String::from("/traces/endpoint"),
                String::from("/traces/credential"),
            ),
            (
                String::from("/network/proxy"),
                String::from("/network/proxy_credential"),
            ),
        ];
        for index in 0..self.list("backends").len() {
            for key in ["credential", "credentials"] {
                let address = format!("/backends/{index}/base_url");
                pairs.push((address, format!("/backends/{index}/{key}")));
            }
        }
        for (address, credential) in pairs {
            if self.merged.at(&address).is_null() || self.merged.at(&credential).is_null() {
                continue;
            }
            let origins = (self.merged.origin(&address), self.merged.origin(&credential));
            if let (Some(Origin::File { path: one, .. }), Some(Origin::File { path: other, .. })) = origins
                && one != other
            {
                let name = |pointer: &str| String::from(pointer.rsplit('/').next().unwrap_or_default());
                let message = format!(
                    "`{}` comes from {}, and a secret is sent only to the address that its file names; set both \
                     in one file",
                    name(&credential),
                    other.display(),
                );
                self.report(&address, message);
            }
        }
    }

    fn backends(&mut self) {
        for (index, backend) in self.list("backends").iter().enumerate() {
            let pointer = format!("/backends/{index}");
            let one = format!("{pointer}/credential");
            self.known(&one, &backend["credential"], "credentials", "credential");
            let pool = backend["credentials"].as_array();
            for (at, name) in pool.into_iter().flatten().enumerate() {
                let place = format!("{pointer}/credentials/{at}");
                self.known(&place, name, "credentials", "credential");
            }
            if pool.is_some() && backend.get("credential").is_some() {
                self.report(&one, "`credential` and `credentials` cannot be combined");
            }
            match backend["kind"].as_str() {
                Some("scripted") if backend.get("script").is_none() => {
                    self.report(
                        &pointer,
                        "a scripted back-end requires `script`, the path of its script",
                    );
                }
                Some(kind) if kind != "scripted" && backend.get("script").is_some() => {
                    let message = "`script` is valid only for kind `scripted`";
                    self.report(&format!("{pointer}/script"), message);
                }
                _ => {}
            }
            self.program(&pointer, backend);
            for name in backend["headers"].as_object().into_iter().flatten() {
                if SECRET_HEADERS.contains(&name.0.to_lowercase().as_str()) {
                    let place = format!("{pointer}/headers/{}", escape(name.0));
                    self.report(&place, "this header contains a secret; use `credential` instead");
                }
            }
        }
    }

    /// A program: from a preset or `command`, with exactly one operation.
    fn program(&mut self, pointer: &str, backend: &Value) {
        let (preset, command) = (backend["preset"].as_str(), backend["command"].as_object());
        if backend["kind"] != "command" {
            for key in ["preset", "command"] {
                if backend.get(key).is_some() {
                    let message = format!("`{key}` is valid only for kind `command`");
                    self.report(&format!("{pointer}/{key}"), message);
                }
            }
            return;
        }
        let own = command.and_then(|command| command.get("argv"));
        if preset.is_none() && own.is_none() {
            let message = "either `preset` or `command` with `argv` is required";
            return self.report(pointer, message);
        }
        let preset = preset.and_then(Preset::named);
        let declared = backend["operations"].as_array().map(Vec::as_slice);
        let operation = match (declared, preset) {
            (Some([one]), _) => serde_json::from_value(one.clone()).ok(),
            (None, Some(preset)) => Some(preset.operation),
            _ => None,
        };
        let Some(operation) = operation else {
            let message = "a program has exactly one operation; set it in `operations`";
            return self.report(&format!("{pointer}/operations"), message);
        };
        let place = format!("{pointer}/command");
        let program = Program::over(preset.map(|preset| &preset.command), command);
        let options = program.and_then(|program| program.options("", operation));
        match options {
            Err(problem) => self.report(&place, problem),
            Ok(mut options) => {
                options.model = backend["model"].as_str().map(String::from);
                options.default_model = backend["default_model"].as_str().map(String::from);
                if let Some(problem) = options.problem() {
                    self.report(&place, problem);
                }
            }
        }
        let set = command.and_then(|command| command.get("set_env"));
        for (name, _) in set.and_then(Value::as_object).into_iter().flatten() {
            if is_secret_name(name) {
                let message = "secrets are not allowed here; list the variable in `env` instead";
                self.report(&format!("{place}/set_env/{}", escape(name)), message);
            }
        }
    }

    fn routing(&mut self) {
        for key in ["allow", "deny"] {
            let pointer = format!("/routing/{key}");
            let names = self.merged.at(&pointer);
            for (at, name) in names.as_array().into_iter().flatten().enumerate() {
                self.known(&format!("{pointer}/{at}"), name, "backends", "back-end");
            }
        }
        let pointer = "/routing/policy";
        let policy = self.merged.at(pointer);
        self.known(
            &format!("{pointer}/mirror_to"),
            &policy["mirror_to"],
            "backends",
            "back-end",
        );
        let spec = serde_json::from_value::<PolicySpec>(policy).ok();
        if let Some(Err(error)) = spec.as_ref().map(Policy::try_from) {
            self.report(pointer, error.to_string());
        }
    }

    fn aliases(&mut self) {
        let aliases = self.merged.at("/aliases");
        for (name, alias) in aliases.as_object().into_iter().flatten() {
            let pointer = format!("/aliases/{}", escape(name));
            let target = alias
                .as_str()
                .or_else(|| alias["model"].as_str())
                .unwrap_or_default();
            if aliases.get(target).is_some() {
                self.report(
                    &pointer,
                    format!("`{target}` is an alias; the target must be a model or a module"),
                );
            }
            self.known(
                &format!("{pointer}/backend"),
                &alias["backend"],
                "backends",
                "back-end",
            );
        }
    }

    fn network(&mut self) {
        let network = self.merged.at("/network");
        let pointer = "/network/proxy_credential";
        self.known(pointer, &network["proxy_credential"], "credentials", "credential");
        if network["proxy"].as_str().is_some_and(|url| url.contains('@')) {
            let message = "user and password are not allowed here; use `proxy_credential`";
            self.report("/network/proxy", message);
        }
    }

    fn gate(&mut self) {
        let gate = self.merged.at("/gate");
        self.known("/gate/backend", &gate["backend"], "backends", "back-end");
        for (module, rule) in gate["modules"].as_object().into_iter().flatten() {
            let pointer = format!("/gate/modules/{}/backend", escape(module));
            self.known(&pointer, &rule["backend"], "backends", "back-end");
        }
        let rerun = gate["action"] == "rerun" && gate.get("backend").is_none();
        if rerun {
            self.report(
                "/gate/action",
                "`rerun` requires `backend`, the back-end that is called again",
            );
        }
    }

    /// Reports a name that is not in a list. Absent values and other types are not checked here.
    fn known(&mut self, pointer: &str, name: &Value, list: &str, what: &str) {
        let Some(name) = name.as_str() else { return };
        let items = self.list(list);
        let names: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
        if names.contains(&name) {
            return;
        }
        let near = nearest(name, names.iter().copied());
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        let all = || (!names.is_empty()).then(|| format!("configured: {}", names.join(", ")));
        self.problems.push(Problem {
            key: self.merged.dotted(pointer),
            message: format!("unknown {what} `{name}`"),
            hint: hint.or_else(all),
            origin: self.merged.origin(pointer).cloned(),
        });
    }

    fn report(&mut self, pointer: &str, message: impl Into<String>) {
        self.problems.push(Problem {
            key: self.merged.dotted(pointer),
            message: message.into(),
            hint: None,
            origin: self.merged.origin(pointer).cloned(),
        });
    }

    fn list(&self, key: &str) -> Vec<Value> {
        let list = self.merged.tree.get(key).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    }
}

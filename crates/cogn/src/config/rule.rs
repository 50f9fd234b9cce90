//! What a schema cannot say about a configuration: names that must be known elsewhere in it, and keys
//! that go together or not at all.

use engine::route::Policy;
use ir::envelope::PolicySpec;
use serde_json::Value;

use super::known_secrets::is_secret_name;
use super::layer::escape;
use super::merged::Merged;
use super::preset::Preset;
use super::schema::Problem;
use super::settings::Program;
use crate::near::nearest;

/// Headers that carry secrets: a configuration file is no place for their values.
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
                (None, None) => self.say(&pointer, "it needs `env` or `file`, to say where the secret is"),
                (Some(_), Some(_)) => self.say(&pointer, "`env` and `file` are both given; one must go"),
                _ => {}
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
                self.say(&one, "`credential` and `credentials` are both given; one must go");
            }
            match backend["kind"].as_str() {
                Some("scripted") if backend.get("script").is_none() => {
                    self.say(
                        &pointer,
                        "a scripted back-end needs `script`, the file that it plays",
                    );
                }
                Some(kind) if kind != "scripted" && backend.get("script").is_some() => {
                    let message = "only a scripted back-end has a `script`";
                    self.say(&format!("{pointer}/script"), message);
                }
                _ => {}
            }
            self.program(&pointer, backend);
            for name in backend["headers"].as_object().into_iter().flatten() {
                if SECRET_HEADERS.contains(&name.0.to_lowercase().as_str()) {
                    let place = format!("{pointer}/headers/{}", escape(name.0));
                    self.say(
                        &place,
                        "this header carries a secret; name a `credential` instead",
                    );
                }
            }
        }
    }

    /// A program: said by a recipe or in full, and doing one thing.
    fn program(&mut self, pointer: &str, backend: &Value) {
        let (recipe, command) = (backend["recipe"].as_str(), backend["command"].as_object());
        if backend["kind"] != "command" {
            for key in ["recipe", "command"] {
                if backend.get(key).is_some() {
                    let message = format!("only a back-end of kind `command` has a `{key}`");
                    self.say(&format!("{pointer}/{key}"), message);
                }
            }
            return;
        }
        let own = command.and_then(|command| command.get("argv"));
        if recipe.is_none() && own.is_none() {
            let message = "it needs a `recipe`, or `command` with `argv`: the program and its arguments";
            return self.say(pointer, message);
        }
        let recipe = recipe.and_then(Preset::named);
        let said = backend["operations"].as_array().map(Vec::as_slice);
        let operation = match (said, recipe) {
            (Some([one]), _) => serde_json::from_value(one.clone()).ok(),
            (None, Some(recipe)) => Some(recipe.operation),
            _ => None,
        };
        let Some(operation) = operation else {
            let message = "a program does one thing: `operations` must name it, and nothing else";
            return self.say(&format!("{pointer}/operations"), message);
        };
        let place = format!("{pointer}/command");
        let program = Program::over(recipe.map(|recipe| &recipe.command), command);
        let options = program.and_then(|program| program.options("", operation));
        match options {
            Err(problem) => self.say(&place, problem),
            Ok(mut options) => {
                options.model = backend["model"].as_str().map(String::from);
                options.default_model = backend["default_model"].as_str().map(String::from);
                if let Some(problem) = options.problem() {
                    self.say(&place, problem);
                }
            }
        }
        let set = command.and_then(|command| command.get("set_env"));
        for (name, _) in set.and_then(Value::as_object).into_iter().flatten() {
            if is_secret_name(name) {
                let message = "a secret does not belong here; name the variable in `env` instead";
                self.say(&format!("{place}/set_env/{}", escape(name)), message);
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
            self.say(pointer, error.to_string());
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
                self.say(
                    &pointer,
                    format!("`{target}` is an alias itself; one leads to a model or a module"),
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
            let message = "a proxy's user and password do not belong here; name a `proxy_credential`";
            self.say("/network/proxy", message);
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
            self.say(
                "/gate/action",
                "`rerun` needs `backend`, the one that is asked again",
            );
        }
    }

    /// A name must stand in a list. What is absent or of another type is not this rule's to judge.
    fn known(&mut self, pointer: &str, name: &Value, list: &str, what: &str) {
        let Some(name) = name.as_str() else { return };
        let items = self.list(list);
        let names: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
        if names.contains(&name) {
            return;
        }
        let near = nearest(name, names.iter().copied(), 1);
        let hint = near.first().map(|near| format!("did you mean `{near}`?"));
        let all = || (!names.is_empty()).then(|| format!("configured: {}", names.join(", ")));
        self.problems.push(Problem {
            key: self.merged.dotted(pointer),
            message: format!("no {what} is named `{name}`"),
            hint: hint.or_else(all),
            origin: self.merged.origin(pointer).cloned(),
        });
    }

    fn say(&mut self, pointer: &str, message: impl Into<String>) {
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

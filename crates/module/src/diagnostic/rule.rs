//! The registry of diagnostic codes (M) with their names and default severities. Each has a page under
//! `docs/errors`, which `cogn explain` prints. Codes are never reused; a removed rule leaves a gap.

use std::fmt;

use super::Severity;

#[derive(Debug)]
struct RuleEntry {
    code: &'static str,
    name: &'static str,
    severity: Severity,
    summary: &'static str,
}

/// A registered diagnostic code.
#[derive(Clone, Copy)]
pub struct Rule(&'static RuleEntry);

impl Rule {
    pub fn find(text: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|entry| entry.code == text || entry.name == text)
            .map(Self)
    }

    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(Self)
    }

    pub fn code(self) -> &'static str {
        self.0.code
    }

    /// The name in kebab case, for display and for suppressions.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    pub fn severity(self) -> Severity {
        self.0.severity
    }

    pub fn summary(self) -> &'static str {
        self.0.summary
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.0.code == other.0.code
    }
}

impl Eq for Rule {}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.code, self.0.name)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.code)
    }
}

macro_rules! rules {
    ($($code:ident $constant:ident $name:literal $severity:ident $summary:literal;)*) => {
        static TABLE: &[RuleEntry] = &[$(RuleEntry {
            code: stringify!($code),
            name: $name,
            severity: Severity::$severity,
            summary: $summary,
        }),*];

        rules!(@constants 0usize; $($constant)*);
    };
    (@constants $index:expr; $constant:ident $($rest:ident)*) => {
        impl Rule {
            pub const $constant: Rule = Rule(&TABLE[$index]);
        }
        rules!(@constants $index + 1usize; $($rest)*);
    };
    (@constants $index:expr;) => {};
}

rules! {
    // M1: the folder and its files
    M1001 NOT_A_MODULE "not-a-module" Error "the folder contains no module.yaml, MODULE.md or module.md";
    M1002 MISSING_FILE "missing-file" Error "a file that the format requires is missing";
    M1003 UNREADABLE_FILE "unreadable-file" Error "a file cannot be read";
    M1004 FILE_TOO_LARGE "file-too-large" Error "a file is larger than the limit";
    M1005 NOT_UTF8 "not-utf8" Error "a text file is not UTF-8";
    M1006 BYTE_ORDER_MARK "byte-order-mark" Warning "a file begins with a byte order mark";
    M1007 PATH_ESCAPES "path-escapes" Error "a path or link points outside the module's folder";
    M1008 LINK_LOOP "link-loop" Error "a symbolic link resolves to itself";
    M1009 TOO_MANY_FILES "too-many-files" Error "the folder exceeds the limit of files or depth";
    M1010 DEPRECATED_FORMAT "deprecated-format" Warning "the module uses a deprecated format";
    M1011 AMBIGUOUS_FORMAT "ambiguous-format" Warning "the folder contains files of several formats";
    M1012 NUL_BYTE "nul-byte" Error "a text file contains a NUL byte";
    // M2: the manifest
    M2001 YAML_SYNTAX "yaml-syntax" Error "the manifest is not valid YAML";
    M2002 DUPLICATE_KEY "duplicate-key" Error "a key occurs twice in one mapping";
    M2003 YAML_LIMIT "yaml-limit" Error "the YAML is too deep, too large or expands too far";
    M2004 NOT_A_MAPPING "not-a-mapping" Error "the manifest is not a mapping";
    M2005 MISSING_KEY "missing-key" Error "a required key is missing";
    M2006 WRONG_TYPE "wrong-type" Error "a key has a value of the wrong type";
    M2007 UNKNOWN_VALUE "unknown-value" Error "a key has a value that is not allowed";
    M2008 OUT_OF_RANGE "out-of-range" Error "a number or a string is outside its limits";
    M2009 BAD_NAME "bad-name" Error "the module's name is not lower case letters, digits and hyphens";
    M2010 BAD_VERSION "bad-version" Error "the version does not follow semantic versioning";
    M2011 UNKNOWN_KEY "unknown-key" Warning "an unknown key resembles a known one";
    M2012 NAME_MISMATCH "name-mismatch" Warning "the folder and the module have different names";
    M2013 FRONT_MATTER "front-matter" Error "MODULE.md has no closed front matter";
    M2014 POLICY_SPELLING "policy-spelling" Warning "a policy uses the old `_allowed` spelling";
    M2015 POLICY_CONFLICT "policy-conflict" Error "a policy is given twice with different meanings";
    M2016 BAD_ERROR_CODE "bad-error-code" Error "a module's own error code is outside E5000 to E9999";
    M2017 UNSUPPORTED_FEATURE "unsupported-feature" Error "the manifest uses a feature that no runtime defines";
    M2018 REPEATED_ITEM "repeated-item" Warning "a list contains the same item twice";
    // M3: the schema
    M3001 JSON_SYNTAX "json-syntax" Error "the file is not valid JSON";
    M3002 JSON_TOO_DEEP "json-too-deep" Error "the JSON is nested too deeply";
    M3003 JSON_DUPLICATE_KEY "json-duplicate-key" Error "a key occurs twice in one object";
    M3004 INVALID_SCHEMA "invalid-schema" Error "a section is not a valid JSON Schema";
    M3005 REMOTE_REFERENCE "remote-reference" Error "a `$ref` points outside the document";
    M3006 BROKEN_REFERENCE "broken-reference" Error "a `$ref` does not resolve";
    M3007 REFERENCE_LOOP "reference-loop" Error "a `$ref` resolves to itself";
    M3008 MISSING_SECTION "missing-section" Error "the schema lacks a section that the format requires";
    M3009 OUTPUT_ALIAS "output-alias" Note "`output` is used as another name for `data`";
    M3010 ENUM_PATTERN "enum-pattern" Error "an extensible enum does not have the form that the format requires";
    M3011 MEDIA_PATTERN "media-pattern" Warning "the schema's media pattern refuses types that its manifest allows";
    M3012 SILENT_KEYWORD "silent-keyword" Warning "a keyword of the schema has no effect at its position";
    // M4: prompt, io, tests, assets
    M4001 EMPTY_PROMPT "empty-prompt" Error "the prompt is empty";
    M4002 UNKNOWN_PLACEHOLDER "unknown-placeholder" Warning "the prompt uses a placeholder that is never substituted";
    M4003 MEDIA_PLACEHOLDER "media-placeholder" Warning "$MEDIA_INPUTS and the declared modalities contradict each other";
    M4004 BAD_CALL "bad-call" Error "an @call in the prompt is malformed";
    M4005 BAD_POINTER "bad-pointer" Error "an io pointer does not resolve";
    M4006 BAD_TEST_PAIR "bad-test-pair" Error "a test is not written as `X.input.json -> Y.expected.json`";
    M4007 MISSING_TEST_FILE "missing-test-file" Error "a test names a file that does not exist";
    M4008 TEST_INPUT_INVALID "test-input-invalid" Error "a test's input does not match the input schema";
    M4009 TEST_EXPECTED_INVALID "test-expected-invalid" Error "a test's expected answer does not match the data schema";
    M4010 ORPHAN_TEST_FILE "orphan-test-file" Warning "a test file has no counterpart";
    M4011 ASSET_MISSING "asset-missing" Error "a file under assets/ is referenced but does not exist";
    M4012 ASSET_TOO_LARGE "asset-too-large" Warning "an asset exceeds the limit of its kind";
    M4013 ASSET_MISMATCH "asset-mismatch" Warning "an asset's contents do not match its file extension";
    M4014 UNLISTED_TEST "unlisted-test" Warning "a test in the module's folder is not listed in its manifest";
    M4015 UNUSED_REQUIRED_FIELD "unused-required-field" Error "a required input field reaches no request";
    M4016 UNUSED_FIELD "unused-field" Warning "an optional input field reaches no request";
    M4017 UNKNOWN_ANSWER_FIELD "unknown-answer-field" Warning "the prompt mentions a field of the answer that the schema lacks";
    // M5: composition and context
    M5001 MISSING_REQUIREMENT "missing-requirement" Error "a required module cannot be found";
    M5002 REQUIREMENT_VERSION "requirement-version" Error "the module that was found has another version";
    M5003 COMPOSITION_CYCLE "composition-cycle" Error "modules require each other in a cycle";
    M5004 BAD_EXPRESSION "bad-expression" Error "a condition or mapping cannot be parsed";
    M5005 UNKNOWN_STEP "unknown-step" Error "the data flow names a module that is not required";
    M5006 BAD_VERSION_RANGE "bad-version-range" Error "a version range cannot be parsed";
    M5007 COMPOSITION_TOO_DEEP "composition-too-deep" Error "the chain of requirements is deeper than max_depth";
    M5008 CONTEXT_SCHEMA "context-schema" Error "a context schema file does not exist or is invalid";
    // M6: strict v2.2
    M6001 STRICT_TIER "strict-tier" Error "strict v2.2 requires a tier";
    M6002 STRICT_OVERFLOW "strict-overflow" Error "strict v2.2 requires an overflow section";
    M6003 STRICT_ENUMS "strict-enums" Error "strict v2.2 requires an enums section";
    M6004 STRICT_EXCLUDES "strict-excludes" Error "strict v2.2 requires an excludes list";
    M6005 EMPTY_EXCLUDES "empty-excludes" Warning "the excludes list is empty";
    M6006 STRICT_META_SCHEMA "strict-meta-schema" Error "strict v2.2 requires a meta schema with confidence, risk and explain";
    M6007 STRICT_EXPLAIN_LIMIT "strict-explain-limit" Error "strict v2.2 limits meta.explain to 280 characters";
    M6008 STRICT_RATIONALE "strict-rationale" Error "strict v2.2 requires data.rationale to be required";
    M6009 STRICT_PROMPT "strict-prompt" Error "strict v2.2 requires the prompt to explain the envelope";
    M6010 STRICT_FORMAT "strict-format" Error "the module uses an older format than requested";
    M6011 SHORT_PROMPT "short-prompt" Warning "the prompt is very short";
    M6012 NO_TESTS "no-tests" Warning "the module has no golden tests";
    M6013 STRICT_EXTENSIONS "strict-extensions" Warning "overflow is enabled, but the data schema has no extensions";
    // M7: strict v2.5
    M7001 STRICT_RESPONSE "strict-response" Error "strict v2.5 requires a response section";
    M7002 STRICT_MODALITIES "strict-modalities" Error "strict v2.5 requires a modalities section";
    M7003 STRICT_MEDIA_SCHEMA "strict-media-schema" Error "media is declared, but the input schema has no field for it";
    M7004 STRICT_MEDIA_OUTPUT "strict-media-output" Error "media output is declared, but the data schema has no field for it";
    M7005 STRICT_MEDIA_PROMPT "strict-media-prompt" Warning "media is declared, but the prompt has no $MEDIA_INPUTS";
    M7006 STRICT_ERROR_PATTERN "strict-error-pattern" Warning "the error schema does not match the codes of v2.5";
}

#[cfg(test)]
mod tests {
    use super::Rule;

    #[test]
    fn codes_and_names_are_unique_and_ordered() {
        let codes: Vec<_> = Rule::all().map(Rule::code).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
        let names: std::collections::BTreeSet<_> = Rule::all().map(Rule::name).collect();
        assert_eq!(names.len(), codes.len());
    }

    #[test]
    fn constants_match_their_rows() {
        assert_eq!(Rule::NOT_A_MODULE.code(), "M1001");
        assert_eq!(Rule::STRICT_ERROR_PATTERN.name(), "strict-error-pattern");
        assert_eq!(Rule::find("M3005"), Some(Rule::REMOTE_REFERENCE));
        assert_eq!(Rule::find("remote-reference"), Some(Rule::REMOTE_REFERENCE));
    }
}

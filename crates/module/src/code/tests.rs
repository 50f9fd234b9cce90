use super::{Code, Recoverable, http_status, is_module_specific};

#[test]
fn codes_are_unique_and_well_formed() {
    let mut seen = std::collections::BTreeSet::new();
    for code in Code::all() {
        assert!(seen.insert(code.as_str()), "{code} twice");
        let (kind, digits) = code.as_str().split_at(1);
        assert!(matches!(kind, "E" | "W"), "{code}");
        assert!(
            digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit()),
            "{code}"
        );
        assert!(!code.suggestion().is_empty() && !code.summary().is_empty());
        assert_eq!(code.is_warning(), kind == "W");
    }
    assert!(seen.len() > 50);
}

#[test]
fn constants_match_their_rows() {
    assert_eq!(Code::E1000.as_str(), "E1000");
    assert_eq!(Code::E4015.as_str(), "E4015");
    assert_eq!(Code::W4014.as_str(), "W4014");
    assert_eq!(Code::E4001.recoverable(), Recoverable::Yes);
}

#[test]
fn finds_numbers_names_and_legacy_spellings() {
    let found = |text| Code::find(text).map(Code::as_str);
    assert_eq!(found("E3001"), Some("E3001"));
    assert_eq!(found("PARSE_ERROR"), Some("E1000"));
    assert_eq!(found("LOW_CONFIDENCE"), Some("E2001"));
    assert_eq!(found("BEHAVIOR_CHANGE_REQUIRED"), Some("E2005"));
    assert_eq!(found("E9999"), None);
    assert_eq!(found(""), None);
}

#[test]
fn codes_have_expected_http_statuses() {
    let expected = [
        ("E1001", 400),
        ("E1005", 413),
        ("E1010", 415),
        ("E1011", 413),
        ("E1012", 424),
        ("E1019", 404),
        ("E2001", 422),
        ("E2002", 504),
        ("E3001", 500),
        ("E4001", 503),
        ("E4002", 429),
        ("E4006", 404),
        ("E4007", 403),
        ("E4008", 404),
        ("E4009", 404),
        ("E4010", 406),
        ("E4011", 501),
        ("E4013", 410),
        ("E4014", 409),
        ("E4015", 402),
        ("E4016", 402),
        ("E5001", 422),
        ("E9999", 422),
    ];
    for (code, status) in expected {
        assert_eq!(http_status(code), status, "{code}");
    }
}

#[test]
fn recognises_module_specific_codes() {
    assert!(is_module_specific("E5001") && is_module_specific("E9999"));
    for text in ["E4001", "E50011", "E500", "e5001", "E5O01", ""] {
        assert!(!is_module_specific(text), "{text}");
    }
}

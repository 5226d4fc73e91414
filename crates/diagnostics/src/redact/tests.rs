use secrecy::SecretString;
use turnbuckle_errors::Redact as _;

use super::*;

fn redactor() -> Redactor {
    Redactor::new(["s3cr3t-value-1234", "with\"quote\\and"].map(SecretString::from))
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(redactor().redact(text), expected);
}

#[test]
fn known_secrets_go_wherever_they_stand() {
    check("key s3cr3t-value-1234!", "key [redacted]!");
    check("xs3cr3t-value-1234s3cr3t-value-1234", "x[redacted][redacted]");
    check(r#"{"k":"with\"quote\\and"}"#, r#"{"k":"[redacted]"}"#);
    check("S3CR3T-VALUE-1234", "[redacted]");
}

#[test]
fn short_secrets_do_not_blank_out_words() {
    let redactor = Redactor::new([SecretString::from("the")]);
    assert_eq!(redactor.redact("the theme"), "the theme");
}

#[test]
fn a_secret_that_stands_in_the_mask_is_not_masked_for_ever() {
    let redactor = Redactor::new([SecretString::from("redacted")]);
    assert_eq!(redactor.redact("it was redacted: [redacted]"), "it was redacted: [redacted]");
}

#[test]
fn an_empty_secret_is_none() {
    let redactor = Redactor::new(["", "  \n"].map(SecretString::from));
    assert_eq!(redactor.redact("any text"), "any text");
    assert_eq!(format!("{redactor:?}"), "Redactor { known: 0 }");
}

#[test]
fn text_without_secrets_is_borrowed() {
    assert!(matches!(redactor().redact("nothing here"), Cow::Borrowed(_)));
    assert!(matches!(redactor().redact("api_key=[redacted]"), Cow::Borrowed(_)));
}

#[test]
fn the_lines_of_a_long_secret_are_secret_too() {
    let key = "first-line-of-the-key\nsecond-line-of-the-key";
    let redactor = Redactor::new([SecretString::from(key)]);
    assert_eq!(redactor.redact("x second-line-of-the-key y"), "x [redacted] y");
    assert_eq!(redactor.redact(&key.replace('\n', " ")), "[redacted]");
}

#[test]
fn what_masking_brings_together_is_looked_at_again() {
    let text = format!("abcs3cr3t-value-1234sk-ant-{}", "a1b2c3d4e5");
    check(&text, "abc[redacted][redacted]");
}

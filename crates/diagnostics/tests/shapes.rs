//! What looks like a secret is masked: one row a shape.
//!
//! Tokens are put together here, so that no scanner takes this file for a leak.

use turnbuckle_diagnostics::Redactor;
use turnbuckle_errors::Redact as _;

const HEX: &str = "0123456789abcdef";
const UPPER: &str = "A2B3C4D5E6F7G8H9";
const MIXED: &str = "aZ3bY4cX5dW6eV7fU8gT9";

/// `length` characters that repeat `from`.
fn body(from: &str, length: usize) -> String {
    from.chars().cycle().take(length).collect()
}

/// Every vendor token: prefix and body.
fn tokens() -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let mut add = |prefixes: &[&'static str], from: &str, length: usize| {
        rows.extend(prefixes.iter().map(|prefix| (*prefix, body(from, length))));
    };
    add(&["sk-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-", "sk-lf-"], MIXED, 48);
    add(&["sk-ant-api03-", "sk-ant-oat01-"], MIXED, 95);
    add(&["AIza"], MIXED, 35);
    add(&["ya29.", "GOCSPX-"], MIXED, 28);
    add(&["gsk_", "csk-", "xai-", "pplx-"], MIXED, 48);
    add(&["r8_", "fw_", "hf_", "tgp_v1_", "nvapi-", "jina_", "tvly-", "pcsk_"], MIXED, 37);
    add(&["lsv2_pt_", "e2b_"], HEX, 40);
    add(&["AKIA", "ASIA", "ABIA", "ACCA"], UPPER, 16);
    add(&["ABSK"], MIXED, 128);
    add(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "npm_", "dp.pt.", "dp.ct."], MIXED, 40);
    add(&["github_pat_"], MIXED, 82);
    add(&["glpat-", "glptt-", "gldt-", "glcbt-"], MIXED, 20);
    add(&["ATATT3", "pypi-AgEIcHlwaS5vcmc"], MIXED, 180);
    add(&["ATBB"], MIXED, 32);
    add(&["xoxb-1234567890-", "xoxp-1234567890-", "xoxe-1-", "xapp-1-A123-"], MIXED, 24);
    add(&["sk_live_", "rk_live_", "sk_test_", "whsec_"], MIXED, 24);
    add(&["sq0atp-", "sq0csp-"], MIXED, 43);
    add(&["SK", "key-", "shpat_", "shpca_", "shppa_", "shpss_", "dapi"], HEX, 32);
    add(&["rubygems_", "pul-", "sbp_"], HEX, 48);
    add(&["dop_v1_", "doo_v1_", "dor_v1_"], HEX, 64);
    add(&["dckr_pat_", "hvs.", "hvb.", "sb_secret_"], MIXED, 27);
    add(&["lin_api_", "ntn_", "secret_", "figd_", "nfp_"], MIXED, 43);
    add(&["glsa_", "PMAK-"], HEX, 59);
    add(&["NRAK-"], UPPER, 27);
    add(&["AGE-SECRET-KEY-1"], UPPER, 58);
    add(&["tskey-auth-"], MIXED, 30);
    rows
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let redactor = Redactor::default();
    assert_eq!(redactor.redact(text), expected);
    assert_eq!(redactor.redact(expected), expected, "masking again changes it");
}

#[test]
fn every_vendor_token_is_masked_wherever_it_stands() {
    let rows = tokens();
    println!("counted: {} redaction shapes", rows.len());
    assert!(rows.len() >= 60, "{} shapes", rows.len());
    for (prefix, body) in rows {
        let token = format!("{prefix}{body}");
        check(&format!("bad key: {token}"), "bad key: [redacted]");
        check(&format!("({token})"), "([redacted])");
        check(&format!("{{\"note\":\"{token}\"}}"), "{\"note\":\"[redacted]\"}");
        check(&format!("a\\n{token}\\nb"), "a\\n[redacted]\\nb");
        check(&format!("q%3D{token}"), "q%3D[redacted]");
        check(&format!("key is {token}, sorry"), "key is [redacted], sorry");
        check(&token, "[redacted]");
    }
}

#[test]
fn tokens_of_several_parts_are_masked_whole() {
    let sendgrid = format!("SG.{}.{}", body(MIXED, 22), body(MIXED, 43));
    check(&format!("mail {sendgrid} sent"), "mail [redacted] sent");
    let telegram = format!("123456789:AA{}", body(MIXED, 33));
    check(&format!("chat {telegram}"), "chat [redacted]");
    check(&format!("/bot{telegram}/getMe"), "/bot[redacted]/getMe");
    let jwt = format!("eyJ{}.eyJ{}.{}", body(MIXED, 33), body(MIXED, 70), body(MIXED, 43));
    check(&format!("session {jwt}."), "session [redacted].");
    let unsigned = format!("eyJ{}.eyJ{}.", body(MIXED, 33), body(MIXED, 70));
    check(&format!("none {unsigned}"), "none [redacted].");
    let encrypted = format!("{jwt}.{}.{}", body(MIXED, 22), body(MIXED, 30));
    check(&encrypted, "[redacted]");
}

#[test]
fn a_key_that_a_server_shortened_is_masked() {
    check(
        "Incorrect API key provided: sk-abc***********wxyz.",
        "Incorrect API key provided: [redacted].",
    );
    check("provided: sk-proj-aaaabbbbcccc.", "provided: [redacted].");
}

#[test]
fn webhook_addresses_lose_what_makes_them_work() {
    let path = format!("T00000000/B00000000/{}", body(MIXED, 24));
    check(
        &format!("post to https://hooks.slack.com/services/{path} failed"),
        "post to https://hooks.slack.com/services/[redacted] failed",
    );
    let path = format!("123456789012345678/{}", body(MIXED, 68));
    check(
        &format!("https://discord.com/api/webhooks/{path}"),
        "https://discord.com/api/webhooks/[redacted]",
    );
}

#[test]
fn private_keys_are_masked_and_public_ones_stay() {
    let lines = format!("{0}\n{0}\n", body(MIXED, 64));
    for label in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "EC PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let block = format!("-----BEGIN {label}-----\n{lines}-----END {label}-----");
        check(&format!("a\n{block}\nb"), "a\n[redacted]\nb");
        check(&format!("a {} b", block.replace('\n', " ")), "a [redacted] b");
        let json = format!("{{\"private_key\":\"{}\\n\",\"x\":1}}", block.replace('\n', "\\n"));
        let masked = Redactor::default().redact(&json).into_owned();
        assert_eq!(masked, "{\"private_key\":\"[redacted]\",\"x\":1}");
        let cut = format!("x -----BEGIN {label}-----\n{}", body(MIXED, 64));
        check(&cut, "x [redacted]");
    }
    let legacy = format!(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n{lines}-----END RSA PRIVATE KEY-----"
    );
    check(&legacy, "[redacted]");
    let public = format!("-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----");
    check(&public, &public);
}

#[test]
fn headers_that_carry_keys_are_masked_with_their_scheme() {
    check("Authorization: Bearer abc", "Authorization: [redacted]");
    check("authorization=Basic dXNlcjpwYXNz", "authorization=[redacted]");
    check(
        "Proxy-Authorization: Basic dXNlcjpwYXNz\r\nHost: h",
        "Proxy-Authorization: [redacted]\r\nHost: h",
    );
    check(r#"{"x-api-key": "abc123"}"#, r#"{"x-api-key": "[redacted]"}"#);
    check(r#"{\"Authorization\":\"Bearer abc\"}"#, r#"{\"Authorization\":\"[redacted]\"}"#);
    check("api-key: a; next", "api-key: [redacted]; next");
    check("x-goog-api-key: abc\nx: y", "x-goog-api-key: [redacted]\nx: y");
    check("Ocp-Apim-Subscription-Key: 0a0b", "Ocp-Apim-Subscription-Key: [redacted]");
    check("-H 'Authorization: Bearer abc' -X POST", "-H 'Authorization: [redacted]' -X POST");
    check("got bearer abcdefgh.ijkl", "got bearer [redacted]");
    check("sent Bearer%20abcdefgh1", "sent Bearer%20[redacted]");
    check("proxy says Basic dXNlcjpwYXNz", "proxy says Basic [redacted]");
    check("Cookie: session=abc; theme=dark", "Cookie: [redacted]");
    check("set-cookie: id=a3fWa; Path=/; HttpOnly\nx: y", "set-cookie: [redacted]\nx: y");
    check(r#""Cookie": "a=b; c=d", "Host""#, r#""Cookie": "[redacted]", "Host""#);
    check("PRIVATE-TOKEN: abc", "PRIVATE-TOKEN: [redacted]");
    check(
        "Authorization: AWS4-HMAC-SHA256 Credential=AK/s3, SignedHeaders=host;range, Signature=0a1b\nx: y",
        "Authorization: [redacted]\nx: y",
    );
    check(
        r#"authorization: Digest username="u", response="0a1b" done"#,
        "authorization: [redacted] done",
    );
}

#[test]
fn fields_are_masked_by_their_name() {
    check(r#"{"api_key":"abc","n":1}"#, r#"{"api_key":"[redacted]","n":1}"#);
    check(r#"{"password": "two words"}"#, r#"{"password": "[redacted]"}"#);
    check(r#"{\"clientSecret\": \"a\\\"b\"}"#, r#"{\"clientSecret\": \"[redacted]\"}"#);
    check(r#"{"access_token":"cut of"#, r#"{"access_token":"[redacted]"#);
    check("{'refresh_token': 'abc'}", "{'refresh_token': '[redacted]'}");
    check("OPENAI_API_KEY=abc", "OPENAI_API_KEY=[redacted]");
    check("export DB_PASSWORD=hunter", "export DB_PASSWORD=[redacted]");
    check("MY_KEY=a1b2c3d4e5", "MY_KEY=[redacted]");
    check("AWS_SECRET_ACCESS_KEY=wJalr/bPx+K", "AWS_SECRET_ACCESS_KEY=[redacted]");
    check("aws_secret_access_key = wJalr7bPx+K", "aws_secret_access_key = [redacted]");
    check("password: hunter2\nuser: x", "password: [redacted]\nuser: x");
    check("api_key = \"abc\"", "api_key = \"[redacted]\"");
    check("const token = 'a1b2c3d4e5'", "const token = '[redacted]'");
    check("--api-key a1b2c3", "--api-key [redacted]");
    check("--password=hunter2 --host h", "--password=[redacted] --host h");
    check(
        "//registry.example.org/:_authToken=abc-def",
        "//registry.example.org/:_authToken=[redacted]",
    );
    check("API key: a1b2c3d4", "API key: [redacted]");
    check("client_secret=abc&grant_type=x", "client_secret=[redacted]&grant_type=x");
    check(r#"{"secret": "abcdefgh"}"#, r#"{"secret": "[redacted]"}"#);
    check("%22api_key%22%3A%22abc123", "%22api_key%22%3A[redacted]");
    check("ALTER USER x PASSWORD 'hunter2'", "ALTER USER x PASSWORD '[redacted]'");
    check("Password=secret;Server=h", "Password=[redacted];Server=h");
    check("AccountName=a;AccountKey=ab+/c==;End=x", "AccountName=a;AccountKey=[redacted];End=x");
    check("SharedAccessKey=ab/c=", "SharedAccessKey=[redacted]");
    check("host=h user=u password=secret dbname=d", "host=h user=u password=[redacted] dbname=d");
}

#[test]
fn addresses_lose_their_user_and_their_keys() {
    check("postgres://u:pw@h:5432/db", "postgres://[redacted]@h:5432/db");
    check("mongodb+srv://u:p%40w@c.example/?w=1", "mongodb+srv://[redacted]@c.example/?w=1");
    check("redis://:pw@h:6379/0", "redis://[redacted]@h:6379/0");
    check("amqp://u:pa/ss@h/v", "amqp://[redacted]@h/v");
    check("https://a1b2c3d4e5f6g7h8@h/p", "https://[redacted]@h/p");
    check("GET https://h/v1?key=a1b2c3d4&alt=sse", "GET https://h/v1?key=[redacted]&alt=sse");
    check(
        "/cb?access_token=a&x=1#id_token=b",
        "/cb?access_token=[redacted]&x=1#id_token=[redacted]",
    );
    check("/v?token=abc HTTP/1.1", "/v?token=[redacted] HTTP/1.1");
    check("u=%2Fv%3Fapi_key%3Dabc%26x", "u=%2Fv%3Fapi_key%3D[redacted]");
    check(
        "https://b.example/f?X-Amz-Credential=AK%2Fus&X-Amz-Signature=0a1b2c3d&X-Amz-Date=2",
        "https://b.example/f?X-Amz-Credential=AK%2Fus&X-Amz-Signature=[redacted]&X-Amz-Date=2",
    );
    check(
        "https://a.example/c?sv=2024&sig=ab%2Bc123%3D",
        "https://a.example/c?sv=2024&sig=[redacted]",
    );
}

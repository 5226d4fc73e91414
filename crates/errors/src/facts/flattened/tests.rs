use super::*;

fn status(text: &str) -> Option<u16> {
    Flattened::read(text)?.status
}

#[test]
fn a_status_at_the_start_is_read_where_an_error_follows() {
    for (text, expected) in [
        // The OpenAI and Anthropic SDKs for JavaScript.
        ("429 You exceeded your current quota", 429),
        ("401 Incorrect API key provided: x", 401),
        ("400 {\"type\":\"error\",\"error\":{\"message\":\"m\"}}", 400),
        ("503 status code (no body)", 503),
        ("Error: 529 {\"type\":\"error\"}", 529),
        ("BadRequestError: 400 This model's maximum context length is 5", 400),
        ("529 overloaded", 529),
        ("404 model \"x\" not found, try pulling it first", 404),
        ("429 余额不足", 429),
        ("502", 502),
        ("502 Bad Gateway", 502),
        ("502 bad gateway", 502),
        ("500: upstream fell over", 500),
        ("(429) slow down", 429),
        ("503 <html><title>Busy</title>", 503),
    ] {
        assert_eq!(status(text), Some(expected), "{text}");
    }
}

#[test]
fn a_status_that_is_named_is_read() {
    for (text, expected) in [
        ("HTTP 503", 503),
        ("HTTP/1.1 429 Too Many Requests", 429),
        ("error, status code: 429, message: slow down", 429),
        ("request failed: status=429", 429),
        ("Request failed with status code 502", 502),
        ("Error code: 401 - {'error': {'message': 'no'}}", 401),
        ("got status: 503 Service Unavailable. {\"error\":{\"code\":503}}", 503),
        ("unexpected status 429 Too Many Requests: later", 429),
        ("HTTP status client error (429 Too Many Requests) for url (https://host/)", 429),
        (
            "[GoogleGenerativeAI Error]: Error fetching from https://h/: [429 Too Many Requests] You exceeded",
            429,
        ),
        ("{\"statusCode\": 400, \"unparsed", 400),
    ] {
        assert_eq!(status(text), Some(expected), "{text}");
    }
}

#[test]
fn digits_in_prose_are_no_status() {
    for text in [
        "retry after 4013 ms",
        "model gpt-500-turbo said 429 words",
        "500 tokens were used",
        "404 files were read",
        "429 Requests were sent",
        "the tool printed \"status code: 503\" and ended",
        "the tool printed `HTTP 500`",
        "exit status 500",
        "process ended with exit status: 404",
        "429ms later",
        "4291 Things",
        "500.25 Dollars",
        "503/504 Something",
        "v1.500 Released",
        "line 404: unexpected token",
        "terminated",
        "took 500",
        "status 500 items",
        "HTTP 4013",
        "http://host:500/path",
        "https://host/status/500",
        "[500 bottles] of beer",
        "",
    ] {
        assert_eq!(status(text), None, "{text}");
    }
}

#[test]
fn the_body_behind_a_status_is_read_as_one() {
    let seen = Flattened::read(
        r#"429 {"error":{"code":"insufficient_quota","message":"no credit"}} (request id: 5)"#,
    )
    .unwrap();
    assert_eq!(seen.body.code.as_deref(), Some("insufficient_quota"));
    assert_eq!(seen.body.message.as_deref(), Some("no credit"));

    // A flattened text does not tell that the body was empty.
    assert_eq!(Flattened::read("400").unwrap().body.shape, BodyShape::Text);
    let prose = Flattened::read("HTTP 503: come back later").unwrap();
    assert_eq!(prose.body.message.as_deref(), Some("come back later"));
}

#[test]
fn an_error_object_alone_needs_no_status() {
    let seen = Flattened::read(r#"Error: {"error":{"type":"overloaded_error"}}"#).unwrap();
    assert_eq!((seen.status, seen.body.kind.as_deref()), (None, Some("overloaded_error")));
    assert_eq!(Flattened::read("{}"), None);
    assert_eq!(Flattened::read("[done]"), None);
}

#[test]
fn the_dict_of_a_python_sdk_is_a_body() {
    let seen = Flattened::read(
        "Error code: 429 - {'error': {'message': 'm', 'type': 'insufficient_quota', 'param': None}}",
    )
    .unwrap();
    assert_eq!((seen.status, seen.body.kind.as_deref()), (Some(429), Some("insufficient_quota")));
}

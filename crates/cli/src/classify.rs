//! `turnbuckle classify`: what an error of any stack means, one line an error.
//!
//! For hosts in other languages, whose stack flattened an error to a text: the
//! same classifier that decides inside, over whatever they still hold.

use std::{
    io::{self, BufRead, IsTerminal as _, Read as _, Write},
    process::ExitCode,
    time::SystemTime,
};

use serde_json::{Map, Value, json};
use turnbuckle_diagnostics::Redactor;
use turnbuckle_errors::{
    BadReport, ErrorCode, Fact, Facts, Failure, Phase, REPORT_FIELDS, SafePart, SafeText, explain,
};

use crate::{
    args::{ClassifyArgs, Format},
    nearest::nearest,
    refusal::{invalid, tell},
};

/// The longest line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

pub(crate) fn classify(args: &ClassifyArgs) -> ExitCode {
    let classifier = Classifier { redactor: Redactor::default(), explain: args.explain };
    let mut out = io::stdout().lock();
    let message = args.message.as_ref().map(|message| message.to_string_lossy());
    let ended = match message.filter(|message| message != "-") {
        Some(message) => classifier.line(&message, 1, &mut out),
        None if io::stdin().is_terminal() => {
            let refusal = invalid("nothing to classify; give a MESSAGE, or pipe in one a line");
            return tell(&refusal, Format::Text);
        }
        None => classifier.lines(&mut io::stdin().lock(), &mut out),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Classifier {
    redactor: Redactor,
    explain: bool,
}

impl Classifier {
    /// Classifies line by line, holding one line at a time. Whether all were good.
    fn lines(&self, input: &mut impl BufRead, out: &mut impl Write) -> io::Result<bool> {
        let mut all_good = true;
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let read = input.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            let too_long = line.len() as u64 > MAX_LINE_BYTES && !line.ends_with(b"\n");
            let text = String::from_utf8_lossy(&line);
            if too_long {
                skip_line(input)?;
                self.refuse(&SafeText::from("the line is longer than 1 MiB"), number, out)?;
                all_good = false;
            } else if !text.trim().is_empty() {
                all_good &= self.line(text.trim(), number, out)?;
            }
        }
        out.flush()?;
        Ok(all_good)
    }

    fn line(&self, text: &str, number: u64, out: &mut impl Write) -> io::Result<bool> {
        match self.facts(text) {
            Ok(facts) => writeln!(out, "{}", self.told(&facts)).map(|()| true),
            Err(message) => self.refuse(&message, number, out).map(|()| false),
        }
    }

    fn refuse(&self, message: &SafeText, number: u64, out: &mut impl Write) -> io::Result<()> {
        let code = ErrorCode::InvalidArgument;
        let error = json!({ "error": { "code": code, "message": message, "line": number } });
        writeln!(out, "{error}")
    }

    /// A line that starts with `{` is a report, any other is a message.
    fn facts(&self, text: &str) -> Result<Facts, SafeText> {
        if !text.starts_with('{') {
            return Ok(Facts::new(Phase::Request).with(Fact::Message(text.to_owned())));
        }
        let report: Value = serde_json::from_str(text).map_err(|error| {
            let column = u64::try_from(error.column()).unwrap_or_default();
            SafeText::compose(&[
                "the line is no JSON: it breaks off or errs at column ".into(),
                column.into(),
                "; a message must not start with `{`".into(),
            ])
        })?;
        Facts::from_json(&report, SystemTime::now()).map_err(|bad| self.why(bad, &report))
    }

    /// Says what is wrong with a report, by the name of the field where it has one.
    fn why(&self, bad: BadReport, report: &Value) -> SafeText {
        let name = match (bad, report.as_object()) {
            (BadReport::UnknownField { position }, Some(fields)) => fields.keys().nth(position),
            _ => None,
        };
        let Some(name) = name else {
            return SafeText::redacted(&bad.to_string(), &self.redactor);
        };
        let shown = SafeText::redacted(name, &self.redactor);
        let advice = match name.as_str() {
            "error" => "; put the whole body under `body`".to_owned(),
            name => match nearest(name, REPORT_FIELDS) {
                Some(field) => format!("; did you mean `{field}`?"),
                None => format!("; known are {}", REPORT_FIELDS.join(", ")),
            },
        };
        let advice = SafeText::redacted(&advice, &self.redactor);
        SafeText::compose(&[
            "unknown field `".into(),
            SafePart::Text(&shown),
            "`".into(),
            SafePart::Text(&advice),
        ])
    }

    fn told(&self, facts: &Facts) -> Value {
        let failure = Failure::from_facts(facts, &self.redactor);
        let details = failure.details();
        let mut told = Map::new();
        let mut put = |name: &str, value: Value| told.insert(name.to_owned(), value);
        put("code", json!(failure.code()));
        put("retriable", json!(failure.retriable()));
        put("retryAfterMs", json!(details.retry_after_ms));
        put("providerStatus", json!(details.provider_status));
        put("providerCode", json!(details.provider_code));
        put("delivered", json!(details.delivered));
        put("rule", json!(details.rule));
        put("message", json!(failure.message()));
        if self.explain {
            put("weighed", json!(explain(facts).weighed));
        }
        Value::Object(told)
    }
}

/// Reads on to the end of a line without keeping it.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let held = input.fill_buf()?;
        let (used, ended) = match held.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (held.len(), held.is_empty()),
        };
        input.consume(used);
        if ended {
            return Ok(());
        }
    }
}

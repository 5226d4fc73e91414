//! The words and the input of a parsed command.

use tree_sitter::Node;

use super::Simple;

/// The words of a command without assignments and redirects, as far as known.
pub(super) fn words(command: Simple<'_, '_>, source: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut cursor = command.node.walk();
    for child in command.node.named_children(&mut cursor) {
        match child.kind() {
            "variable_assignment" | "herestring_redirect" | "heredoc_redirect" | "subshell" => {}
            "file_redirect" => words.extend(stray_words(child, source)),
            _ => words.push(literal(child, source)),
        }
    }
    if let Some(parent) = command.redirected() {
        let mut cursor = parent.walk();
        for redirect in parent.named_children(&mut cursor) {
            words.extend(stray_words(redirect, source));
        }
    }
    words
}

/// Words of the command that stand behind a redirect and are parsed into it.
fn stray_words(redirect: Node<'_>, source: &str) -> Vec<String> {
    let (field, own) = match redirect.kind() {
        "file_redirect" => ("destination", 1),
        "heredoc_redirect" => ("argument", 0),
        _ => return Vec::new(),
    };
    let mut cursor = redirect.walk();
    let words = redirect.children_by_field_name(field, &mut cursor).skip(own);
    words.map(|word| literal(word, source)).collect()
}

/// The here-document or here-string that a command reads, if it has one.
pub(super) fn input_text(command: Simple<'_, '_>, source: &str) -> Option<String> {
    for holder in [Some(command.node), command.redirected()].into_iter().flatten() {
        let mut cursor = holder.walk();
        for redirect in holder.named_children(&mut cursor) {
            let mut inner = redirect.walk();
            let mut parts = redirect.named_children(&mut inner);
            match redirect.kind() {
                "heredoc_redirect" => return body(redirect, source),
                "herestring_redirect" => return parts.next().map(|part| literal(part, source)),
                _ => {}
            }
        }
    }
    None
}

/// The most parts of a pipeline in which the one before a shell is looked for.
const PARTS: usize = 64;

/// The text that the part of a pipeline before this command prints, where it is
/// written down: `echo …`, `printf …`, `cat <<EOF`.
pub(super) fn piped_text(command: Simple<'_, '_>, source: &str) -> Option<String> {
    let mut above = command.above.iter().rev();
    let mut within = command.node;
    let mut holder = above.next()?;
    if holder.kind() == "redirected_statement" {
        within = *holder;
        holder = above.next()?;
    }
    let mut pipeline = None;
    if holder.kind() == "pipeline" && holder.named_child_count() <= PARTS {
        let mut cursor = holder.walk();
        let parts: Vec<Node<'_>> = holder.named_children(&mut cursor).collect();
        let at = parts.iter().position(|part| *part == within)?;
        match at.checked_sub(1).and_then(|before| parts.get(before)) {
            Some(before) => return printed(*before, source),
            None => pipeline = above.next(),
        }
    }
    // What stands behind `<<EOF |` is parsed into the here-document.
    let redirect = pipeline.unwrap_or(holder);
    if redirect.kind() != "heredoc_redirect" {
        return None;
    }
    body(*redirect, source)
}

fn printed(part: Node<'_>, source: &str) -> Option<String> {
    let is_redirected = part.kind() == "redirected_statement";
    let node = if is_redirected { part.named_child(0)? } else { part };
    if node.kind() != "command" {
        return None;
    }
    let above = if is_redirected { &[part][..] } else { &[] };
    let command = Simple { node, above };
    let words = words(command, source);
    match words.split_first()? {
        (name, rest) if name == "echo" || name == "printf" => {
            Some(rest.join(" ").replace("\\n", "\n"))
        }
        (name, _) if name == "cat" => input_text(command, source),
        _ => None,
    }
}

fn body(heredoc: Node<'_>, source: &str) -> Option<String> {
    let mut cursor = heredoc.walk();
    let body = heredoc.named_children(&mut cursor).find(|part| part.kind() == "heredoc_body")?;
    Some(text(body, source).to_owned())
}

/// The value of a word; what only the shell knows stays as it is written.
fn literal(node: Node<'_>, source: &str) -> String {
    let whole = text(node, source);
    match node.kind() {
        "command_name" => {
            node.named_child(0).map_or_else(|| whole.to_owned(), |child| literal(child, source))
        }
        "concatenation" => {
            let mut cursor = node.walk();
            node.children(&mut cursor).map(|part| literal(part, source)).collect()
        }
        "raw_string" => whole.trim_matches('\'').to_owned(),
        "string" => unescape(between(whole, "\"", "\""), |c| matches!(c, '"' | '\\' | '$' | '`')),
        "ansi_c_string" => between(whole, "$'", "'").replace("\\n", "\n").replace("\\'", "'"),
        "word" => unescape(whole, |_| true),
        _ => whole.to_owned(),
    }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let text = text.strip_prefix(start).unwrap_or(text);
    text.strip_suffix(end).unwrap_or(text)
}

fn unescape(text: &str, escapable: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match characters.peek() {
            Some(next) if character == '\\' && escapable(*next) => {
                plain.extend(characters.next().filter(|next| *next != '\n'));
            }
            _ => plain.push(character),
        }
    }
    plain
}

pub(super) fn text<'a>(node: Node<'_>, source: &'a str) -> &'a str {
    source.get(node.byte_range()).unwrap_or_default()
}

//! The tools of a request, which stay the same from one request to the next.

#[cfg(feature = "adapter")]
use std::sync::{Mutex, PoisonError};
use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

#[cfg(feature = "adapter")]
use bytes::Bytes;

use crate::ToolDefinition;

/// The tools that a model may ask for, in order. A clone shares them, and what an
/// adapter has checked and written of them.
///
/// It reads like a slice, and is made of a `Vec`.
#[derive(Clone, Default)]
pub struct ToolList(Arc<Shared>);

#[derive(Default)]
struct Shared {
    tools: Vec<ToolDefinition>,
    #[cfg(feature = "adapter")]
    written: Mutex<Option<(WrittenFor, Bytes)>>,
}

/// The dialect that tools were written in, and whether the last of them is marked.
#[cfg(feature = "adapter")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrittenFor {
    pub(crate) dialect: &'static str,
    pub(crate) marked: bool,
}

impl ToolList {
    /// No tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool at the end.
    pub fn push(&mut self, tool: ToolDefinition) {
        self.own().push(tool);
    }

    /// Leaves no tool.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The tools, to be changed for this list alone.
    fn own(&mut self) -> &mut Vec<ToolDefinition> {
        let shared = Arc::make_mut(&mut self.0);
        #[cfg(feature = "adapter")]
        {
            shared.written = Mutex::default();
        }
        &mut shared.tools
    }

    /// Their JSON, written once for each dialect in turn.
    ///
    /// # Errors
    ///
    /// That of `write`; it is asked again the next time.
    #[cfg(feature = "adapter")]
    pub(crate) fn written<E>(
        &self,
        by: WrittenFor,
        write: impl FnOnce(&[ToolDefinition]) -> Result<Vec<u8>, E>,
    ) -> Result<Bytes, E> {
        let mut written = self.0.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, bytes)) = &*written
            && *known == by
        {
            return Ok(bytes.clone());
        }
        let bytes = Bytes::from(write(&self.0.tools)?);
        *written = Some((by, bytes.clone()));
        Ok(bytes)
    }
}

impl Deref for ToolList {
    type Target = [ToolDefinition];

    fn deref(&self) -> &[ToolDefinition] {
        &self.0.tools
    }
}

impl DerefMut for ToolList {
    fn deref_mut(&mut self) -> &mut [ToolDefinition] {
        self.own()
    }
}

impl Shared {
    fn of(tools: Vec<ToolDefinition>) -> Self {
        Self {
            tools,
            #[cfg(feature = "adapter")]
            written: Mutex::default(),
        }
    }
}

impl Clone for Shared {
    /// What was written is left out: a copy is made to be changed.
    fn clone(&self) -> Self {
        Self::of(self.tools.clone())
    }
}

impl From<Vec<ToolDefinition>> for ToolList {
    fn from(tools: Vec<ToolDefinition>) -> Self {
        Self(Arc::new(Shared::of(tools)))
    }
}

impl FromIterator<ToolDefinition> for ToolList {
    fn from_iter<I: IntoIterator<Item = ToolDefinition>>(tools: I) -> Self {
        tools.into_iter().collect::<Vec<_>>().into()
    }
}

impl PartialEq for ToolList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.tools == other.0.tools
    }
}

impl fmt::Debug for ToolList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.tools.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ToolDefinition {
        let input_schema = serde_json::json!({"type": "object"});
        ToolDefinition { name: name.into(), description: String::new(), input_schema }
    }

    #[cfg(feature = "adapter")]
    #[test]
    fn tools_are_written_once_until_they_change() {
        let by = WrittenFor { dialect: "d", marked: false };
        let names = |tools: &ToolList, by| {
            let mut wrote = false;
            let bytes = tools.written::<()>(by, |tools| {
                wrote = true;
                Ok(tools.iter().map(|tool| tool.name.as_str()).collect::<String>().into_bytes())
            });
            (String::from_utf8(bytes.unwrap().to_vec()).unwrap(), wrote)
        };
        let mut tools = ToolList::from(vec![tool("a")]);
        assert_eq!(names(&tools, by), ("a".into(), true));
        let before = tools.clone();
        assert_eq!(names(&before, by), ("a".into(), false));
        assert_eq!(names(&tools, WrittenFor { marked: true, ..by }), ("a".into(), true));
        tools.push(tool("b"));
        tools[0].name = "c".into();
        assert_eq!(names(&tools, by), ("cb".into(), true));
        assert_eq!((names(&before, by).0.as_str(), before.len()), ("a", 1));
        tools.clear();
        assert_eq!(tools, ToolList::new());
    }
}

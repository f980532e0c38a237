use rusqlite::types::Value;

/// A query built in steps. Values from clients are only ever bound, never part of the text.
pub(super) struct Query {
    pub(super) text: String,
    pub(super) values: Vec<Value>,
}

impl Query {
    pub(super) fn new(text: &'static str) -> Self {
        Self { text: text.to_owned(), values: Vec::new() }
    }

    /// Appends text, and the values of its placeholders.
    pub(super) fn append(&mut self, text: &'static str, values: impl IntoIterator<Item = Value>) {
        self.text.push_str(text);
        self.values.extend(values);
    }

    /// Adds a condition, and the values of its placeholders.
    pub(super) fn and(&mut self, condition: &'static str, values: impl IntoIterator<Item = Value>) {
        self.text.push_str(" AND ");
        self.append(condition, values);
    }

    /// Adds the condition `expression NOT IN (values)`.
    pub(super) fn and_not_in(&mut self, expression: &'static str, values: Vec<String>) {
        let placeholders = vec!["?"; values.len()].join(", ");
        self.and(expression, []);
        self.text.push_str(" NOT IN (");
        self.text.push_str(&placeholders);
        self.text.push(')');
        self.values.extend(values.into_iter().map(Value::from));
    }
}

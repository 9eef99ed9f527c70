//! Forms of metrics: that of Prometheus, which every tool reads, and OpenMetrics, for those that
//! ask for it.

/// A form of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The text form of Prometheus, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Form {
    /// The form that a header `Accept` likes best; without one, that of Prometheus.
    pub(crate) fn of(accept: &str) -> Form {
        let (mut open, mut text) = (0.0, 0.0_f64);
        for wanted in accept.split(',') {
            let mut parts = wanted.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q="));
            let weight = weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
            match kind.as_str() {
                "application/openmetrics-text" => open = f64::max(open, weight),
                "text/plain" | "text/*" => text = text.max(weight),
                _ => {}
            }
        }
        match open > 0.0 && open >= text {
            true => Form::OpenMetrics,
            false => Form::Prometheus,
        }
    }

    /// The type of the content.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Form::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Form::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Metrics in this form, of those in OpenMetrics.
    pub(super) fn of_text(self, text: String) -> String {
        match self {
            Form::OpenMetrics => text,
            Form::Prometheus => prometheus(&text),
        }
    }
}

/// Rewrites metrics in the text form of Prometheus: a counter has the name of its samples, and there
/// are no units and no end.
fn prometheus(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        let mut add = |parts: &[&str]| {
            parts.iter().for_each(|part| out.push_str(part));
            out.push('\n');
        };
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        {
            let total = if kind == "counter" { "_total" } else { "" };
            if let Some((_, help)) = help.take_if(|(of, _)| *of == name) {
                add(&["# HELP ", name, total, " ", help]);
            }
            add(&["# TYPE ", name, total, " ", if kind == "unknown" { "untyped" } else { kind }]);
        } else if !line.starts_with("# UNIT ") && line != "# EOF" {
            add(&[line]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_that_which_is_asked_for() {
        for accept in [
            "",
            "*/*",
            "text/plain;version=0.0.4",
            "text/plain;version=0.0.4;q=0.9, application/openmetrics-text;q=0.1",
            "application/openmetrics-text;q=0",
            "text/html, */*;q=0.8",
        ] {
            assert_eq!(Form::of(accept), Form::Prometheus, "{accept}");
        }
        for accept in [
            "application/openmetrics-text",
            "Application/OpenMetrics-Text; version=1.0.0",
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
        ] {
            assert_eq!(Form::of(accept), Form::OpenMetrics, "{accept}");
        }
    }

    #[test]
    fn counters_have_the_name_of_their_samples_in_the_form_of_prometheus() {
        let text = "# HELP hits Reads.\n# TYPE hits counter\nhits_total 1\n\
                    # HELP took Time.\n# TYPE took histogram\n# UNIT took seconds\ntook_sum 0.5\n\
                    # TYPE free gauge\nfree{db=\"0\"} 7\n# EOF\n";
        let expected = "# HELP hits_total Reads.\n# TYPE hits_total counter\nhits_total 1\n\
                        # HELP took Time.\n# TYPE took histogram\ntook_sum 0.5\n\
                        # TYPE free gauge\nfree{db=\"0\"} 7\n";
        assert_eq!(Form::Prometheus.of_text(text.to_owned()), expected);
        assert_eq!(Form::OpenMetrics.of_text(text.to_owned()), text);
    }
}

//! Finds the terms that make a condition true: for `a || b` the operands that are true, for `a && b` both operands. A
//! comparison or a call is one term, which is not split further.

use super::{Truth, truth};
use cel::Context;
use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};

/// Returns the terms that can make a true condition false if they change, in order. Empty if the condition is not true.
pub(super) fn terms<'e>(condition: &'e IdedExpr, context: &Context<'_, '_>) -> Vec<&'e IdedExpr> {
    let mut found = Vec::new();
    if evaluate(condition, context) == Some(true) {
        collect(condition, true, context, &mut found);
    }
    found
}

fn evaluate(term: &IdedExpr, context: &Context<'_, '_>) -> Option<bool> {
    match truth(context.resolve(term)) {
        Truth::True => Some(true),
        Truth::False => Some(false),
        Truth::Unknown(_) => None,
    }
}

/// Collects the terms that give `part` the value `wanted`.
fn collect<'e>(
    part: &'e IdedExpr,
    wanted: bool,
    context: &Context<'_, '_>,
    found: &mut Vec<&'e IdedExpr>,
) {
    let Expr::Call(call) = &part.expr else {
        return found.push(part);
    };
    match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::LOGICAL_NOT, [one]) => collect(one, !wanted, context, found),
        (operators::LOGICAL_OR | operators::LOGICAL_AND, sides) => {
            for side in sides {
                if evaluate(side, context) == Some(wanted) {
                    collect(side, wanted, context, found);
                }
            }
        }
        (operators::CONDITIONAL, [which, yes, no]) => {
            let Some(chosen) = evaluate(which, context) else {
                return;
            };
            collect(if chosen { yes } else { no }, wanted, context, found);
            collect(which, chosen, context, found);
        }
        _ => found.push(part),
    }
}

/// Returns whether a term only tests for existence: `"x" in this`, `has(this.x)`, `this.x != ""`.
pub(super) fn is_weak(term: &IdedExpr) -> bool {
    match &term.expr {
        Expr::Select(select) => select.test,
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::IN, [_, map]) => matches!(map.expr, Expr::Ident(_)),
            (operators::NOT_EQUALS, [_, value]) => {
                matches!(&value.expr, Expr::Literal(LiteralValue::String(text)) if text.inner().is_empty())
            }
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Condition, Known, Ledger, World};
    use serde_json::json;

    fn world() -> World {
        let known = [
            ("a", json!(1)),
            ("b", json!("off")),
            ("c", json!(false)),
            ("list", json!(["x", "y"])),
        ];
        let known = known.map(|(key, value)| (key.to_owned(), Known::Value(value)));
        World {
            this: Ledger::new("property", known),
            ..World::empty()
        }
    }

    fn deciding(source: &str) -> String {
        let world = world();
        let mut found = Vec::new();
        let condition = Condition::new(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        condition.visit_deciding(&world, &mut || found.extend(world.this.take_asked()));
        assert!(world.this.take_asked().is_empty(), "{source}");
        found.join(" ")
    }

    #[test]
    fn terms_that_made_it_true_come_first() {
        for (source, expected) in [
            // A correct setting is not marked, wherever it stands.
            (r#"this.a == 2 || this.b == "off""#, "b"),
            (r#"this.a in [0, 2] || this.b == "off" || this.c"#, "b"),
            (r#"this.a == 1 && this.b == "off""#, "a b"),
            // The value decides first, then the existence.
            (r#"has(this.a) && this.b == "off""#, "b a"),
            (r#"this.b != "" && "c" in this && !this.c"#, "c b c"),
            (r#"this.a == 2 ? this.c : this.b == "off""#, "b a"),
            (r#"!(this.a == 2 || this.c)"#, "a c"),
            (r#"!(this.a == 2 && this.c)"#, "a c"),
            (r#"!(this.a == 1 && this.c)"#, "c"),
            (
                r#"this.list.exists(one, one == "y") || this.a == 3"#,
                "list",
            ),
            // An unknown side does not decide.
            (r#"this.absent == 1 || this.b == "off""#, "b"),
            (
                r#"(this.c || this.a == 1) && (this.b == "off" || this.c)"#,
                "a b",
            ),
            (r#"this.c"#, ""),
            (r#"this.absent == 1"#, ""),
        ] {
            assert_eq!(deciding(source), expected, "{source}");
        }
    }
}

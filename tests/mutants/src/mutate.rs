//! Finds the mutants of one source file and writes them in.

use crate::Mutant;
use std::collections::HashSet;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ImplItemFn, ItemFn, ReturnType, Stmt, Type};

/// Returns `text` with the mutants in it, on the same lines. New mutants are added to `mutants`; their numbers are their
/// places in it. All are counted; those in `chosen` (of the same numbering) are written.
///
/// # Panics
///
/// If `text` is not Rust.
pub fn file(name: &str, text: &str, switch: &str, mutants: &mut Vec<Mutant>, chosen: &HashSet<usize>) -> String {
    let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut finder = Finder { name, text, switch, mutants, chosen, edits: Vec::new(), depth: 0 };
    finder.visit_file(&parsed);
    let mut edits = finder.edits;
    // Of two at one position, the outer one opens first and closes last.
    edits.sort_by_key(|edit| (edit.at, edit.rank));
    let mut out = String::with_capacity(text.len() * 2);
    let mut from = 0;
    for edit in edits {
        out.push_str(&text[from..edit.at]);
        out.push_str(&edit.text);
        from = edit.at;
    }
    out.push_str(&text[from..]);
    out
}

struct Edit {
    at: usize,
    rank: i64,
    text: String,
}

struct Finder<'a> {
    name: &'a str,
    text: &'a str,
    switch: &'a str,
    mutants: &'a mut Vec<Mutant>,
    chosen: &'a HashSet<usize>,
    edits: Vec<Edit>,
    /// The depth in the syntax: outer edits have lower ranks where they open, higher ones where they close.
    depth: i64,
}

impl Finder<'_> {
    /// Counts a mutant. Returns its call of the switch, if it is chosen.
    fn mutant(&mut self, line: usize, change: &str) -> Option<String> {
        let id = self.mutants.len();
        let code = self.text.lines().nth(line - 1).unwrap_or_default().trim().to_owned();
        self.mutants.push(Mutant { file: self.name.to_owned(), line, change: change.to_owned(), code });
        self.chosen.contains(&id).then(|| format!("{}({id}u32)", self.switch))
    }

    fn open(&mut self, at: usize, text: String) {
        self.edits.push(Edit { at, rank: self.depth, text });
    }

    fn close(&mut self, at: usize, text: String) {
        self.edits.push(Edit { at, rank: -self.depth, text });
    }

    fn around(&mut self, range: Range<usize>, before: String, after: &str) {
        // At one position, closing text comes before opening text.
        self.open(range.start, before);
        self.edits.push(Edit { at: range.end, rank: -1_000_000 - self.depth, text: after.to_owned() });
    }

    /// `if on(1) { return ..; }` at the beginning of a function.
    fn body(&mut self, constness: bool, output: &ReturnType, block: &syn::Block, line: usize) {
        if constness || block.stmts.is_empty() {
            return;
        }
        let at = range(block).start + 1;
        let own = self.text[at..range(block).end - 1].trim();
        for value in values(output).iter().filter(|value| **value != own) {
            let told = if value.is_empty() { "body to nothing".to_owned() } else { format!("body to {value}") };
            if let Some(on) = self.mutant(line, &told) {
                self.close(at, format!(" if {on} {{ return {value}; }}"));
            }
        }
    }
}

/// Returns other values for a function to return, by its type in the source.
fn values(output: &ReturnType) -> &'static [&'static str] {
    let ReturnType::Type(_, output) = output else { return &[""] };
    match &**output {
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return &[] };
            let argument = match &last.arguments {
                syn::PathArguments::AngleBracketed(list) => list.args.first(),
                _ => None,
            };
            let unit =
                matches!(argument, Some(syn::GenericArgument::Type(Type::Tuple(tuple))) if tuple.elems.is_empty());
            match last.ident.to_string().as_str() {
                "bool" => &["true", "false"],
                "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => &["0", "1"],
                "Option" => &["None"],
                "Result" if unit => &["Ok(())"],
                _ => &[],
            }
        }
        _ => &[],
    }
}

/// Returns whether a condition has a `let` outside of blocks and closures: such operands cannot be moved into an
/// expression.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(paren) => has_let(&paren.expr),
        _ => false,
    }
}

fn range(of: &impl Spanned) -> Range<usize> {
    of.span().byte_range()
}

fn line(of: &impl Spanned) -> usize {
    of.span().start().line
}

/// Returns whether these attributes exclude an item from the build under test, or mark it as test code.
fn is_elsewhere(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let syn::Meta::List(list) = &attribute.meta else { return path.is_ident("test") };
        let words = list.tokens.to_string();
        path.is_ident("cfg")
            && (words == "test"
                || words.starts_with("all (test")
                // The gate runs on Linux.
                || words.starts_with("not (unix")
                || words.starts_with("not (any (target_os")
                || words.contains("defmt")
                || words.contains("not (feature")
                || words.contains("not (target_pointer_width"))
    })
}

/// Returns the attributes of a statement: of those expressions that have some in this project.
fn attributes(statement: &Stmt) -> &[syn::Attribute] {
    match statement {
        Stmt::Local(local) => &local.attrs,
        Stmt::Macro(statement) => &statement.attrs,
        Stmt::Expr(Expr::MethodCall(expr), _) => &expr.attrs,
        Stmt::Expr(Expr::Call(expr), _) => &expr.attrs,
        Stmt::Expr(Expr::Assign(expr), _) => &expr.attrs,
        Stmt::Expr(Expr::Try(expr), _) => &expr.attrs,
        Stmt::Expr(Expr::Binary(expr), _) => &expr.attrs,
        Stmt::Expr(Expr::Block(expr), _) => &expr.attrs,
        Stmt::Expr(Expr::If(expr), _) => &expr.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => {
                let shown = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
                if shown.is_some_and(|name| ["Debug", "Display", "Format"].iter().any(|known| name.ident == known)) {
                    return;
                }
                &item.attrs
            }
            // The compiler evaluates it.
            syn::Item::Const(_) | syn::Item::Static(_) | syn::Item::Macro(_) => return,
            _ => return visit::visit_item(self, item),
        };
        if !is_elsewhere(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        let constant = function.sig.constness.is_some();
        if constant {
            return;
        }
        self.body(constant, &function.sig.output, &function.block, line(&function.sig.ident));
        visit::visit_block(self, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if function.sig.constness.is_some() || is_elsewhere(&function.attrs) {
            return;
        }
        self.body(false, &function.sig.output, &function.block, line(&function.sig.ident));
        visit::visit_block(self, &function.block);
    }

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_type(&mut self, _: &'ast Type) {}

    fn visit_pat(&mut self, _: &'ast syn::Pat) {}

    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    /// The compiler evaluates the length of an array.
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if is_elsewhere(attributes(statement)) {
            return;
        }
        self.depth += 1;
        if let Stmt::Expr(expr, Some(_)) = statement
            && matches!(expr, Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_) | Expr::Try(_))
            && let Some(on) = self.mutant(line(expr), "statement deleted")
        {
            self.around(range(statement), format!("if !{on} {{ "), " }");
        }
        visit::visit_stmt(self, statement);
        self.depth -= 1;
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.depth += 1;
        if let Some((_, guard)) = &arm.guard
            && !has_let(guard)
        {
            for (change, join) in [("guard to true", "||"), ("guard to false", "&& !")] {
                if let Some(on) = self.mutant(line(&**guard), change) {
                    self.around(range(&**guard), "((".to_owned(), &format!(") {join}{on})"));
                }
            }
        }
        visit::visit_arm(self, arm);
        self.depth -= 1;
    }

    fn visit_expr_match(&mut self, matched: &'ast syn::ExprMatch) {
        let has_rest =
            matched.arms.last().is_some_and(|arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none());
        if has_rest {
            for arm in &matched.arms[..matched.arms.len() - 1] {
                if arm.guard.is_none()
                    && let Some(on) = self.mutant(line(&arm.pat), "arm deleted")
                {
                    self.open(range(&arm.pat).end, format!(" if !{on}"));
                }
            }
        }
        visit::visit_expr_match(self, matched);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        self.depth += 1;
        if matches!(unary.op, syn::UnOp::Not(_))
            && let Some(on) = self.mutant(line(unary), "! removed")
        {
            self.around(range(unary), format!("({on} ^ "), ")");
        }
        visit::visit_expr_unary(self, unary);
        self.depth -= 1;
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        self.depth += 1;
        let (left, right) = (&binary.left, &binary.right);
        let whole = range(binary);
        let other = match binary.op {
            BinOp::Eq(_) => Some(("== to !=", "")),
            BinOp::Ne(_) => Some(("!= to ==", "")),
            BinOp::Lt(_) => Some(("< to <=", "<=")),
            BinOp::Le(_) => Some(("<= to <", "<")),
            BinOp::Gt(_) => Some(("> to >=", ">=")),
            BinOp::Ge(_) => Some((">= to >", ">")),
            BinOp::Add(_) => Some(("+ to -", "-")),
            BinOp::Sub(_) => Some(("- to +", "+")),
            BinOp::Mul(_) => Some(("* to +", "+")),
            BinOp::BitOr(_) => Some(("| to &", "&")),
            BinOp::BitAnd(_) => Some(("& to |", "|")),
            BinOp::And(_) if !has_let(left) && !has_let(right) => Some(("&& to ||", "||")),
            BinOp::Or(_) => Some(("|| to &&", "&&")),
            BinOp::AddAssign(_) => Some(("+= to -=", "-=")),
            BinOp::SubAssign(_) => Some(("-= to +=", "+=")),
            BinOp::BitOrAssign(_) => Some(("|= to &=", "&=")),
            _ => None,
        };
        let (l, r) = (&self.text[range(&**left)], &self.text[range(&**right)]);
        // A comment between the operands would hide what follows it on the one line of the mutant.
        let has_comment = l.contains("//") || r.contains("//");
        // No test meets the one instant at which these differ.
        let of_clock = matches!(binary.op, BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_))
            && (l.contains("Instant::now()") || r.contains("Instant::now()"));
        if let Some((change, operator)) = other
            && !has_comment
            && !of_clock
            && let Some(on) = self.mutant(line(binary), change)
        {
            if operator.is_empty() {
                // The opposite of a condition: its operands are not written twice.
                self.around(whole, format!("({on} ^ ("), "))");
            } else {
                // The mutant comes before the original: a line break in it would move all later lines.
                let mutated = format!("(if {on} {{ ({l}) {operator} ({r}) }} else {{ ").replace('\n', " ");
                self.around(whole, mutated, " })");
            }
        }
        visit::visit_expr_binary(self, binary);
        self.depth -= 1;
    }
}

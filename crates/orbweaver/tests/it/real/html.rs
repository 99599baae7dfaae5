//! HTML through html5ever: the tags as its tokenizer finds them while its tree builder tells it what is text.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{
    ElementFlags, NodeOrText, QuirksMode, TreeBuilder, TreeBuilderOpts, TreeSink,
};
use html5ever::{Attribute, ExpandedName, QualName};

use super::reader::PageReader;

/// Takes in the elements of a HTML document.
pub(crate) fn html(text: &str, page: &mut PageReader) {
    let options = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let tap = Tap {
        tree: TreeBuilder::new(Names::default(), options),
        page: RefCell::new(std::mem::take(page)),
        text: RefCell::default(),
    };
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from(text));
    let tokenizer = Tokenizer::new(tap, TokenizerOpts::default());
    // It stops at the end of every script, which nobody here runs.
    while !matches!(tokenizer.feed(&queue), html5ever::TokenizerResult::Done) {}
    tokenizer.end();
    *page = tokenizer.sink.page.take();
}

/// Sees every token before the tree builder does.
struct Tap {
    tree: TreeBuilder<Rc<Node>, Names>,
    page: RefCell<PageReader>,
    /// The text of the style sheet or the script that is open.
    text: RefCell<Option<(&'static str, String)>>,
}

impl TokenSink for Tap {
    type Handle = Rc<Node>;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Rc<Node>> {
        let page = &mut *self.page.borrow_mut();
        match &token {
            Token::TagToken(tag) => {
                match self.text.take() {
                    Some(("style", text)) => page.style(&text),
                    Some((_, text)) => page.unreal(&text),
                    None => {}
                }
                if tag.kind == TagKind::StartTag {
                    let get = |name: &str| {
                        let found = tag.attrs.iter().find(|one| &*one.name.local == name);
                        found.map(|one| &*one.value)
                    };
                    page.element(&tag.name, get);
                    let opened = ["style", "script"]
                        .into_iter()
                        .find(|name| **name == *tag.name);
                    *self.text.borrow_mut() = opened.map(|name| (name, String::new()));
                }
            }
            Token::CharacterTokens(more) => {
                if let Some((_, text)) = self.text.borrow_mut().as_mut() {
                    text.push_str(more);
                }
            }
            Token::CommentToken(text) => page.unreal(text),
            _ => {}
        }
        self.tree.process_token(token, line)
    }

    fn end(&self) {
        self.tree.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.tree
            .adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// A node of a tree that is not kept: the builder needs no more than its name.
#[derive(Debug)]
struct Node {
    id: usize,
    name: Option<QualName>,
}

#[derive(Default)]
struct Names {
    next: Cell<usize>,
}

impl Names {
    fn node(&self, name: Option<QualName>) -> Rc<Node> {
        let id = self.next.get() + 1;
        self.next.set(id);
        Rc::new(Node { id, name })
    }
}

impl TreeSink for Names {
    type Handle = Rc<Node>;
    type Output = ();
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) {}
    fn parse_error(&self, _: Cow<'static, str>) {}
    fn get_document(&self) -> Rc<Node> {
        Rc::new(Node { id: 0, name: None })
    }
    fn elem_name<'a>(&'a self, node: &'a Rc<Node>) -> ExpandedName<'a> {
        node.name.as_ref().unwrap().expanded()
    }
    fn create_element(&self, name: QualName, _: Vec<Attribute>, _: ElementFlags) -> Rc<Node> {
        self.node(Some(name))
    }
    fn create_comment(&self, _: StrTendril) -> Rc<Node> {
        self.node(None)
    }
    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Rc<Node> {
        self.node(None)
    }
    fn append(&self, _: &Rc<Node>, _: NodeOrText<Rc<Node>>) {}
    fn append_based_on_parent_node(&self, _: &Rc<Node>, _: &Rc<Node>, _: NodeOrText<Rc<Node>>) {}
    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}
    fn get_template_contents(&self, _: &Rc<Node>) -> Rc<Node> {
        self.node(None)
    }
    fn same_node(&self, one: &Rc<Node>, other: &Rc<Node>) -> bool {
        one.id == other.id
    }
    fn set_quirks_mode(&self, _: QuirksMode) {}
    fn append_before_sibling(&self, _: &Rc<Node>, _: NodeOrText<Rc<Node>>) {}
    fn add_attrs_if_missing(&self, _: &Rc<Node>, _: Vec<Attribute>) {}
    fn remove_from_parent(&self, _: &Rc<Node>) {}
    fn reparent_children(&self, _: &Rc<Node>, _: &Rc<Node>) {}
}

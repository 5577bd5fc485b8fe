#!/usr/bin/env python3
"""Doxygen's input filter: a public header, whose comments are plain `//`, with its comments as Doxygen reads them; and
a page of Markdown with what Doxygen would not understand in it.

    as_doxygen.py FILE

The headers are written for people who open them. What a comment means by where it stands is said to Doxygen here:
  - at the top of the file it is the file's;
  - above a declaration it is that one's, and that of the functions and constants that follow at once without one of
    their own (in a class: of its overloads, and of set_x below x);
  - where the file's begins with the name of a class, `Device: where values live`, it is that class's;
  - a struct of options that has none belongs to the function or class behind it; a class without one, at once behind
    options, has theirs;
  - in the section `templates` are definitions of what is declared above: it is left out;
  - behind a ruler, `// ---- title ---`, it is a section's, and that of the section's functions that have none;
  - behind a declaration it is added to that one's;
  - what is indented in it is code, and in the rest no character is markup;
  - a declaration that it calls internal is left out.
Lines are cut as clang-format leaves them: what stands further in than a scope's declarations belongs to one of them.
"""
import html
import pathlib
import re
import sys

# What is no declaration to be documented.
OUTSIDE = re.compile(
    r'#|namespace |extern "C"|\}|public:|protected:|private:|friend class|static_assert|template <class>$')
NAME = re.compile(r'(operator\W+|\w+)\(')
TYPE = re.compile(r'(?:template <.*?> )?(?:class|struct|enum class) (\w+)')


def split_comment(line):
    """The code of a line, and the text of the comment behind it, or None."""
    match = re.match(r'((?:"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|(?!//).)*)//(.*)$', line)
    return (match[1].rstrip(), match[2]) if match else (line.rstrip(), None)


def plain(text):
    """Text in which nothing is markup: of Doxygen, Markdown or HTML."""
    text = re.sub(r'([\\@&$#<>%*~`|])', r'\\\1', text.strip()).replace('::', '\\::')
    return re.sub(r'^([-+]|\d+\.)(?= )', r'\\\1', text)


def documentation(comment):
    """The texts of a comment's lines, code marked as such."""
    result, code = [], []

    def end_code():
        while code and not code[-1].strip():
            code.pop()
        if code:
            shift = min(len(line) - len(line.lstrip()) for line in code if line.strip())
            result.extend(['@code{.cpp}', *(line[shift:] for line in code), '@endcode'])
            code.clear()

    for text in comment:
        if re.match(r'  +\S', text) or (code and not text.strip()):
            code.append(text)
        else:
            end_code()
            result.append(plain(text))
    end_code()
    return result


def slug(heading):
    """What GitHub calls the place of a heading."""
    return re.sub(r'[^\w\- ]', '', heading.strip().lower()).replace(' ', '-')


def page(text, name):
    """A page as Doxygen takes it for what it is. In code outside of blocks it would drop the sign of `%x`, end at an
    apostrophe, and not see that it is bold; and it knows no places but those that are given a name, one for all
    pages."""
    def code(span):
        inner = re.sub(r'%(?=[A-Za-z_])', '%%', span[1])
        return f'<code>{html.escape(inner, quote=False)}</code>' if "'" in inner else f'`{inner}`'

    def placed(heading):
        place = slug(heading[1])
        return f'{heading[0]} {{#{name}-{place}}}' if place in linked else heading[0]

    linked = set(re.findall(r'\]\(#([^)]+)\)', text))

    def prose(part):
        part = re.sub(r'\*\*(`[^`]+`)\*\*', r'<b>\1</b>', re.sub(r'`([^`]+)`', code, part))
        part = re.sub(r'^##+ (.*)$', placed, part, flags=re.M)
        return re.sub(r'\]\(#([^)]+)\)', rf'](#{name}-\1)', part)

    parts = re.split(r'(^ *```.*?^ *```)', text, flags=re.M | re.S)
    parts[::2] = map(prose, parts[::2])
    return ''.join(parts)


class Header:
    def __init__(self, lines):
        self.lines = lines
        self.result = []
        self.scopes = [0]  # the indents of the declarations of each open scope
        self.run = self.named = None  # the comment of the last declaration, until a blank line, and what it names
        self.section = None
        self.in_body = self.is_complete = True
        self.in_group = self.is_hidden = False  # the section that is open
        self.of_settings = None  # the comment of options, until a blank line
        self.file = []  # its comment
        self.hidden_from = None  # the number of scopes around the declaration that is being left out

    def declaration(self, number):
        """The declaration that begins in this line, up to its body."""
        text = ''
        for line in self.lines[number:]:
            code, behind = split_comment(line)
            text += code.strip() + ' '
            if behind is not None and behind.strip().endswith('internal'):
                text += '// internal'
            if code.endswith((';', '{', '}')):
                return text
        return text

    def of_options(self, number):
        """The comment of options that have none: what is declared behind them."""
        for at in range(number + 1, len(self.lines)):
            if self.lines[at].startswith('};'):
                break
        while self.lines[at].startswith(('};', '//')) or not self.lines[at]:
            at += 1
        text = self.declaration(at)
        kind, name = TYPE.match(text), NAME.search(text)
        return [f' Settings of {kind[1]}.' if kind else f' Settings of {name[1]}().']

    def say(self, texts, indent, mark='///'):
        self.result.extend(f'{" " * indent}{mark} {text}'.rstrip() for text in texts)

    def end_group(self):
        if self.in_group:
            self.result.append('/// @}')
        if self.is_hidden:
            self.result.append('/// @endcond')
        self.in_group = self.is_hidden = False

    def loose(self, comment):
        """A comment with nothing under it: the file's, or a section's. Returns what belongs to the next declaration."""
        if not self.result:
            self.file = comment
            self.say(['@file', *documentation(comment)], 0)
            return []
        ruler = re.match(r' -+ (.*?) -+$', comment[0])
        if not ruler:
            return comment + ['']
        self.end_group()
        self.run = self.section = None
        if ruler[1] == 'templates':
            self.result.append('/// @cond')
            self.is_hidden = True
            return []
        self.section = comment[1:]
        self.in_group = True
        self.say([f'@name {ruler[1]}', *documentation(comment[1:]), '@{'], 0)
        return []

    def inherited(self, text, number, says):
        """The comment of a declaration that has none."""
        kind = TYPE.match(text)
        if kind:
            if kind[1].endswith('Options') and len(self.scopes) == 1:
                return self.of_options(number)
            if self.of_settings:
                return self.of_settings
            return self.file if re.match(rf' {kind[1]}\b', ''.join(self.file[:1])) else None
        if text.startswith('inline constexpr') and len(self.scopes) == 1:
            return self.run
        name = NAME.search(text)
        if not name or text.startswith(('using', '}')):
            return None
        if len(self.scopes) == 1:
            return self.run or (None if says else self.section)
        return self.run if self.named and name[1] in (self.named, f'set_{self.named}') else None

    def code(self, number, comment):
        """A line that is not a comment, and what is said above it. Returns whether something is said behind it."""
        code, behind = split_comment(self.lines[number])
        indent = len(code) - len(code.lstrip())
        text = code.strip()
        if indent < self.scopes[-1] and text.startswith('}') and len(self.scopes) > 1:
            self.scopes.pop()
            self.is_complete = True
        outside = OUTSIDE.match(text)
        begins = indent == self.scopes[-1] and self.is_complete and not outside
        if text == '}' and not indent and self.is_complete:
            self.end_group()
        internal = False
        if begins:
            whole = self.declaration(number)
            internal = whole.endswith('internal')
            said = comment or self.inherited(whole, number, behind is not None)
            if TYPE.match(whole) and len(self.scopes) == 1:
                self.of_settings = comment if TYPE.match(whole)[1].endswith('Options') else None
            if comment:
                name = NAME.search(whole)
                self.run, self.named = comment, name and name[1]
            if internal:
                self.result.append('/// @cond')
            elif said:
                self.say(documentation(said), indent)
        elif comment and not outside:
            raise SystemExit(f'as_doxygen: a comment inside of a declaration: {code}')
        is_forward = re.match(r'(class|struct) \w+;', text)
        says = behind is not None and not is_forward and not behind.strip().endswith('internal') and not outside
        self.result.append(f'{code}  ///< {plain(behind)}' if says else code)
        opens = text.endswith('{')
        if indent == self.scopes[-1] and TYPE.match(text) and opens:
            self.scopes.append(indent + 2)
            self.run = None
            self.is_complete = True
        elif indent >= self.scopes[-1] and not outside or text.startswith('}'):
            if indent == self.scopes[-1]:
                self.in_body = opens
                self.is_complete = text.endswith((';', '}'))
            elif not self.in_body:
                self.in_body = opens
                self.is_complete = text.endswith((';', '}'))
        if internal:
            self.hidden_from = len(self.scopes) - (1 if opens else 0)
        if self.hidden_from is not None and self.is_complete and len(self.scopes) <= self.hidden_from:
            self.result.append('/// @endcond')
            self.hidden_from = None
        return says

    def convert(self):
        comment, indent, trails = [], 0, False
        for number, line in enumerate(self.lines):
            text = line.strip()
            if text.startswith('//'):
                at = len(line) - len(line.lstrip())
                if trails and at > self.scopes[-1]:
                    self.say([plain(text[2:])], at, '///<')
                else:
                    comment.append(text[2:])
                    trails = False
                continue
            if not text or text == '#pragma once':
                comment = self.loose(comment) if comment else []
                self.run, trails = None, False
                if len(self.scopes) == 1:
                    self.of_settings = None
                self.result.append(line.rstrip())
                continue
            trails = self.code(number, comment)
            comment = []
        return '\n'.join(self.result) + '\n'


if __name__ == '__main__':
    with open(sys.argv[1], encoding='utf-8') as file:
        text = file.read()
    path = pathlib.Path(sys.argv[1])
    sys.stdout.write(page(text, path.stem) if path.suffix == '.md' else Header(text.splitlines()).convert())

// SPDX-License-Identifier: GPL-2.0-or-later

//! What is in namespaces and types of C++: functions, types and variables by qualified names, members of base classes.

use super::*;

const TEXT: &str = "
    namespace geo {
    struct Base { int id; struct Inner { long deep; } inner; };
    class Circle : public Base { public: long radius; static int made; int area(int by); int grow(); };
    int Circle::made = 4;
    int Circle::area(int by) { return radius * by; }
    int Circle::grow() { return ++radius; }
    int over(int a) { return a; }
    int over(const char *text) { return *text; }
    template <typename T> __attribute__((noinline)) T most(T a, T b) { return a > b ? a : b; }
    int uses(int a, long b) { return most<int>(a, 2) + most<long>(b, 3); }
    }
    namespace other { struct Circle { char small; }; int area(int a) { return a; } }
    geo::Circle circle; other::Circle another; geo::Base::Inner inner;";

#[test]
fn names_in_scopes() {
    for options in [&["-x", "c++", "-gdwarf-5"], &["-x", "c++", "-gdwarf-4"]] {
        let compiled = Compiled::new(TEXT, options);
        let debug = compiled.open();
        let found = |name: &str, file: Option<&str>| {
            let pattern = FunctionPattern { name: name.into(), file: file.map(Into::into) };
            debug.find_functions(&pattern).expect("an index").len()
        };
        assert_eq!(found("area", None), 2);
        assert_eq!(found("geo::Circle::area", None), 1);
        assert_eq!(found("Circle::area", Some("test.c")), 1);
        assert_eq!(found("other::area", None), 1);
        assert_eq!((found("::area", None), found("geo::area", None), found("ircle::area", None)), (0, 0, 0));
        assert_eq!(found("geo::Circle::*", None), 2);
        assert_eq!((found("over", None), found("geo::over(int)", None), found("over(long)", None)), (2, 1, 0));
        assert_eq!(found("over(const char *)", None), 1);
        assert_eq!((found("geo::most", None), found("most<long int>", None)), (2, 1));
        let circle = type_named(&debug, "geo::Circle");
        assert!(debug.find_type("class other::Circle").expect("an index").is_some_and(|other| other != circle));
        assert!(debug.find_type("geo::Missing").expect("an index").is_none());
        assert_eq!(debug.member(circle, "id").expect("is one").offset, 0);
        assert!(debug.member(circle, "made").is_err(), "a static member has no place");
        assert!(debug.member(type_named(&debug, "Base::Inner"), "deep").is_ok());
        assert!(debug.global("geo::Circle::made", None).expect("an index").is_ok());
        assert!(debug.global("other::made", None).expect("an index").is_err());
    }
}

const HIDDEN: &str = "
    struct Base { int id; int only; };
    struct Second { int other; };
    struct Derived : Base, Second { long id; union { int other; char bytes[4]; }; };
    Derived derived;";

/// A member hides those of the same name in base classes, which come first in the object.
#[test]
fn members_that_hide_those_of_bases() {
    for options in [&["-x", "c++", "-gdwarf-5"], &["-x", "c++", "-gdwarf-4"]] {
        let compiled = Compiled::new(HIDDEN, options);
        let debug = compiled.open();
        let derived = type_named(&debug, "Derived");
        let place = |name| debug.member(derived, name).expect(name).offset;
        assert_eq!((place("id"), place("only"), place("other")), (16, 4, 24));
    }
}

/// A program of several units of C++, linked as it is.
fn linked(compiler: &str, options: &[&str], units: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let names: Vec<String> = (0..units.len()).map(|number| format!("{number}.cc")).collect();
    for (name, text) in names.iter().zip(units) {
        std::fs::write(directory.path().join(name), text).expect("written");
    }
    let linking = ["-g", "-O2", "-fno-inline", "-nostdlib", "-static", "-Wl,-e,main", "-o", "program"];
    let mut command = Command::new(compiler);
    let output = command.current_dir(directory.path()).args(linking).args(options).args(names).output();
    let output = output.expect("the compiler runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    directory
}

const IMPLEMENTED: &str = "
    struct Gadget { struct Impl; Impl *p; };
    struct Widget { struct Impl; Impl *p; };
    namespace { struct Hidden; } struct Holder { Hidden *hidden; };";

/// A type that is only declared in a unit is the one of the same scope, not any of that name.
#[test]
fn declared_types_of_one_name() {
    let gadget = "struct Gadget::Impl { char pad[64]; int count; }; Gadget::Impl gi;\
        namespace { struct Hidden { char pad[32]; int count; }; } Hidden own; int gad(Gadget *g) { return g->p->count + own.count; }";
    let widget =
        "struct Widget::Impl { int count; long other; }; Widget::Impl wi; int wid(Widget *w) { return w->p->count; }";
    let user = "int wid(Widget *w); extern Widget::Impl wi; Gadget gadget; Holder holder; int use(Widget *w) { return wid(w) + 1; }\
        int main() { Widget w = {&wi}; return use(&w); }";
    for compiler in ["g++", "clang++"] {
        let units = [gadget, widget, user].map(|text| format!("{IMPLEMENTED}{text}"));
        let units: Vec<&str> = units.iter().map(String::as_str).collect();
        let directory = linked(compiler, &[], &units);
        let debug = open(&directory.path().join("program"));
        let behind = |pointer: TypeId| match debug.resolve(pointer).expect("is whole").1 {
            Type::Pointer(Some(to)) => to,
            other => panic!("{other:?}"),
        };
        let parameters = debug.parameters(only(&debug, "use")).expect("is whole");
        let implemented = behind(debug.member(behind(parameters[0].type_id), "p").expect("p").type_id);
        assert_eq!(debug.member(implemented, "count").expect("count").offset, 0, "{compiler}");
        let gadget = debug.global("gadget", None).expect("an index").expect("is there").type_id;
        let implemented = behind(debug.member(gadget, "p").expect("p").type_id);
        assert_eq!(debug.member(implemented, "count").expect("count").offset, 64, "{compiler}");
        // An unnamed namespace is of one file.
        let holder = debug.global("holder", None).expect("an index").expect("is there").type_id;
        let hidden = behind(debug.member(holder, "hidden").expect("hidden").type_id);
        assert!(matches!(debug.member(hidden, "count"), Err(MemberError::Incomplete { .. })), "{compiler}");
    }
}

const SEEN: &str = "
    int x = 9; int only_here = 8;
    namespace a { int x = 1; int f() { return x; } namespace { volatile int inner = 5; __attribute__((noinline, used)) int h() { return inner + x; } } }
    namespace b { int x = 2; int f() { return x; } int g() { return a::x + a::inner + a::h() + ::only_here; } namespace c { int n() { return x; } } }
    struct A { static int count; int m(); }; int A::count = 10; int A::m() { return count; }
    struct B { static int count; int m(); }; int B::count = 20; int B::m() { return count; }
    namespace p { extern int far; int far_away() { return far; } }
    int none() { return A::count; } int all() { return x; }";

/// `$x` is the variable that the function's code means by `x`.
#[test]
fn variables_of_the_functions_scope() {
    for options in [&["-gdwarf-5"], &["-gdwarf-4"]] {
        let far = "int far = 7; namespace p { int far = 6; } int main() { return 0; }";
        for compiler in ["g++", "clang++"] {
            let directory = linked(compiler, &[options, &["-O1"][..]].concat(), &[SEEN, far]);
            let debug = open(&directory.path().join("program"));
            let place = |function: &str, name: &str| {
                let id = only(&debug, function);
                let entry = debug.function(id).expect("is whole").bodies[0].entry;
                match debug.variable(id, entry, name).expect("is whole").map(|found| found.location) {
                    Ok(Location::Memory(ops)) => match ops.as_slice() {
                        [Op::Address(address)] => Ok(*address),
                        other => panic!("{other:?}"),
                    },
                    Err(Unavailable::Unsupported(why)) => Err(why),
                    other => panic!("{compiler}: {function} {name}: {other:?}"),
                }
            };
            let symbol = |name: &str| Ok(debug.elf().symbol_address(name).expect("symbols").expect(name));
            assert_eq!(place("a::f", "x"), symbol("_ZN1a1xE"));
            assert_eq!(place("b::f", "x"), symbol("_ZN1b1xE"));
            assert_eq!(place("b::c::n", "x"), symbol("_ZN1b1xE"));
            assert_eq!((place("h", "x"), place("all", "x")), (symbol("_ZN1a1xE"), symbol("x")));
            assert_eq!(
                (place("A::m", "count"), place("B::m", "count")),
                (symbol("_ZN1A5countE"), symbol("_ZN1B5countE"))
            );
            assert_eq!(place("p::far_away", "far"), symbol("_ZN1p3farE"));
            assert_eq!(
                (place("h", "inner"), place("b::f", "only_here")),
                (place("b::g", "inner"), symbol("only_here"))
            );
            assert!(place("none", "count").is_err_and(|why| why.contains("several variables")));
        }
    }
}

/// Link-time optimisation of gcc writes only the places of variables into the units with the code.
#[test]
fn variables_of_link_time_optimisation() {
    let text =
        "int counter = 3; namespace a { volatile int x = 1; __attribute__((noipa)) int f() { return counter += x; } }";
    let main =
        "namespace a { int f(); } extern int counter; volatile int x = 2; int main() { return a::f() + counter + x; }";
    let directory = linked("g++", &["-flto", "-fno-lto-odr-type-merging"], &[text, main]);
    let debug = open(&directory.path().join("program"));
    let id = only(&debug, "a::f");
    let entry = debug.function(id).expect("is whole").bodies[0].entry;
    let at = |symbol: &str| debug.elf().symbol_address(symbol).expect("symbols").expect("is there");
    for (name, symbol) in [("counter", "counter"), ("x", "_ZN1a1xE")] {
        let found = debug.variable(id, entry, name).expect("is whole").expect("is there");
        assert_eq!(found.location, Location::Memory(vec![Op::Address(at(symbol))]), "{name}");
    }
    assert!(debug.global("counter", None).expect("an index").is_ok());
    let found = debug.global("a::x", None).expect("an index").expect("is there");
    assert_eq!(found.location, Location::Memory(vec![Op::Address(at("_ZN1a1xE"))]));
}

const NESTED: &str = "
    volatile int seed = 3;
    template <typename F> __attribute__((noinline)) int apply(F f, int n) { return f(n) + f(n + 1); }
    namespace ns { struct Outer { int base = 4;
        __attribute__((noinline)) int run(int by)
        {
            struct Local { int kept; __attribute__((noinline)) int twice(int a) { asm volatile(\"\" : \"+r\"(a)); return kept * 2 + a; } };
            Local local = { by };
            { auto add = [this, by](int x) __attribute__((noinline)) { asm volatile(\"\" : \"+r\"(x)); return base + by + x; };
              auto inner = [&local](int y) __attribute__((always_inline)) { int z = seed * y; return local.kept + z; };
              return add(seed) + local.twice(seed) + apply(inner, 2); }
        } }; }
    auto outside = [](long q) __attribute__((noinline)) { return q * seed; };
    int main()
    {
        ns::Outer outer;
        int total = outer.run(2) + outside(2);
        auto first = [total](int x) __attribute__((noinline)) {
            auto deep = [x](int w) __attribute__((noinline)) { asm volatile(\"\" : \"+r\"(w)); return x + w; };
            return deep(total); };
        auto second = [total](int x) __attribute__((noinline)) { asm volatile(\"\" : \"+r\"(x)); return total * x; };
        return first(3) + second(4);
    }";

/// Lambdas, and functions of classes that a function has.
#[test]
fn functions_in_functions() {
    for (compiler, options) in
        [("g++", "-gdwarf-5"), ("g++", "-gdwarf-4"), ("clang++", "-gdwarf-5"), ("clang++", "-gdwarf-4")]
    {
        let directory = linked(compiler, &[options, "-fno-exceptions"], &[NESTED]);
        let debug = open(&directory.path().join("program"));
        let found = |name: &str| {
            let pattern = FunctionPattern { name: name.into(), file: None };
            debug.find_functions(&pattern).expect("an index")
        };
        assert_eq!(found("operator()").len(), 6, "{compiler} {options}");
        assert_eq!(found("ns::Outer::run::*::operator()").len(), 2);
        assert_eq!(found("Local::twice").len(), 1);
        for name in ["ns::Outer::run::Local::twice", "ns::Outer::run(int)::Local::twice(int)"] {
            assert_eq!(found(name), found("twice"), "{name}");
        }
        let add = found("ns::Outer::run(int)::{lambda(int)#1}::operator()(int) const");
        assert_eq!(add, found("run::{lambda(int)#1}::operator()"));
        let [add] = add[..] else { panic!("{compiler} {options}: {add:?}") };
        let function = debug.function(add).expect("is whole");
        assert_eq!((function.file.as_str(), function.line), ("0.cc", 9), "{compiler} {options}");
        let in_file = FunctionPattern { name: "operator()".into(), file: Some("0.cc".into()) };
        assert_eq!(debug.find_functions(&in_file).expect("an index").len(), 6, "{compiler} {options}");
        let entry = function.bodies[0].entry;
        let closure = if compiler == "g++" { "__closure" } else { "this" };
        let this = debug.variable(add, entry, closure).expect("is whole").expect("is there");
        let Type::Pointer(Some(of)) = debug.resolve(this.type_id).expect("is whole").1 else { panic!() };
        let kept = if compiler == "g++" { "__by" } else { "by" };
        assert_eq!(debug.member(of, kept).expect("is captured").offset, 8);
        if compiler == "g++" {
            // What it captures is a variable of the lambda, too.
            assert!(debug.variable(add, entry, "by").expect("is whole").is_ok());
        }
        let [inlined] = found("run::{lambda(int)#2}::operator()")[..] else { panic!("{compiler} {options}") };
        let copies = debug.function(inlined).expect("is whole").inlined;
        assert!(!copies.is_empty(), "{compiler} {options}");
        for copy in copies {
            assert!(debug.variable(inlined, copy.address, "y").expect("is whole").is_ok());
        }
        // Linkers' names are not in gcc's debug information of what no other unit can name.
        let of_main = match compiler {
            "g++" => ["main::{lambda#1}::operator()", "main::{lambda#2}::operator()"],
            _ => ["main::$_1::operator()", "main::$_2::operator()"],
        };
        for name in of_main {
            assert_eq!(found(name).len(), 1, "{compiler} {options}: {name}");
        }
        assert_eq!(found("main::*::*::*::operator()").len(), 1, "{compiler} {options}");
        // No type or variable of a function is found without it.
        assert!(debug.find_type("Local").expect("an index").is_none());
        assert!(debug.global("total", None).expect("an index").is_err());
    }
}

const LAMBDAS: &str = "volatile int seed = 3;
    #define LAMBDA [n](int x) __attribute__((noinline)) { asm volatile(\"\" : \"+r\"(x)); return x + n; }
    static __attribute__((noinline)) int over(int n) { auto a = LAMBDA; return a(seed); }
    static __attribute__((noinline)) int over(long n) { auto a = LAMBDA; return a(seed); }
    int main(int n, char **)
    {
        auto first = LAMBDA;
        int all = first(seed);
        {
            auto second = LAMBDA;
            all += second(seed);
            auto third = [n](int x) __attribute__((noinline)) {
                auto deep = LAMBDA; return deep(x); };
            all += third(seed);
        }
        auto fourth = LAMBDA;
        return all + fourth(seed) + over(2) + over(3L);
    }";

/// Lambdas of which gcc does not write what linkers call them are numbered as linkers do: by their places, those of each function
/// by themselves.
#[test]
fn numbers_of_lambdas() {
    for options in ["-gdwarf-5", "-gdwarf-4"] {
        let directory = linked("g++", &[options], &[LAMBDAS]);
        let debug = open(&directory.path().join("program"));
        let lines = |name: &str| {
            let pattern = FunctionPattern { name: format!("{name}::operator()"), file: None };
            let found = debug.find_functions(&pattern).expect("an index");
            let mut lines: Vec<u32> = found.into_iter().map(|id| debug.function(id).expect("is whole").line).collect();
            lines.sort_unstable();
            lines
        };
        let of_main = [1, 2, 3, 4].map(|number| lines(&format!("main::{{lambda#{number}}}")));
        assert_eq!(of_main, [vec![7], vec![10], vec![12], vec![16]], "{options}");
        assert_eq!(lines("main::{lambda#3}::operator()::{lambda#1}"), [13]);
        assert_eq!((lines("over::{lambda#1}"), lines("over::{lambda#2}")), (vec![3, 4], vec![]));
    }
}

/// Functions of a class in a function that is inlined everywhere, of which clang writes no more than the class.
#[test]
fn local_classes_of_inlined_functions() {
    let text = "volatile int seed;
        namespace ns { inline __attribute__((always_inline)) int run(int c)
        {
            struct Local { int k; __attribute__((noinline)) int twice(int a) { asm volatile(\"\" : \"+r\"(a)); return a * k; } };
            Local local = { c };
            return local.twice(seed);
        } }
        int main(int c, char **) { return ns::run(c); }";
    for compiler in ["g++", "clang++"] {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("0.cc"), text).expect("written");
        let linking = ["-g", "-O2", "-nostdlib", "-static", "-Wl,-e,main", "0.cc", "-o", "program"];
        let output = Command::new(compiler).current_dir(directory.path()).args(linking).output();
        let output = output.expect("the compiler runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let debug = open(&directory.path().join("program"));
        for name in ["ns::run::Local::twice", "run::Local::twice", "Local::twice", "ns::run(int)::Local::twice(int)"] {
            let id = only(&debug, name);
            assert!(!debug.function(id).expect("is whole").bodies.is_empty(), "{compiler}: {name}");
        }
    }
}

/// Functions that gcc's C can have in functions.
#[test]
fn nested_functions_of_c() {
    let text = "volatile int seed;
        __attribute__((noinline)) int outer(int by)
        {
            int kept = by * 2;
            __attribute__((noinline)) int inner(int x) { asm volatile(\"\" : \"+r\"(x)); return kept + x; }
            { __attribute__((noinline)) int plain(int p) { asm volatile(\"\" : \"+r\"(p)); return p * 3; }
              return inner(seed) + inner(3) + plain(by); }
        }
        int main(int c, char **v) { return outer(c); }";
    let directory = linked("gcc", &["-x", "c"], &[text]);
    let debug = open(&directory.path().join("program"));
    for (name, parameter) in [("inner", "x"), ("plain", "p"), ("outer::inner", "x"), ("outer", "by")] {
        let id = only(&debug, name);
        let body = &debug.function(id).expect("is whole").bodies[0];
        assert!(debug.variable(id, body.entry, parameter).expect("is whole").is_ok(), "{name}");
        assert_eq!(debug.function_at(body.entry).expect("is whole"), Some(id), "{name}");
    }
}

const OPERATORS: &str = "
    using size = decltype(sizeof(0)); char room[64];
    struct Box { long v;
        operator long() const { return v; } explicit operator bool() const { return v != 0; } operator const char *() const { return room; }
        int operator()(int a) { return v + a; } Box operator,(const Box &o) { return Box{v + o.v}; }
        bool operator<(const Box &o) const { return v < o.v; } long operator<<(int by) const { return v << by; } Box *operator->() { return this; } long operator[](int i) { return v + i; }
        template <typename T> T operator*(T o) { return v * o; } };
    void *operator new[](size n) { return room + n; }
    Box operator\"\"_x(unsigned long long n) { return Box{(long)n}; }
    int main(int c, char **) { Box b{c}; char *p = new char[c]; Box d = (b, 3_x);
        return b(2) + b.operator long() + (b < d) + (b << 2) + (bool)d + b[1] + b->v + p[0] + *(const char *)b + b * 3; }";

#[test]
fn operators() {
    for compiler in ["g++", "clang++"] {
        let directory = linked(compiler, &["-Wno-all"], &[OPERATORS]);
        let debug = open(&directory.path().join("program"));
        let names = [
            "operator long",
            "Box::operator long",
            "Box::operator bool",
            "operator const char*",
            "Box::operator()",
            "operator ()",
            "Box::operator [](int)",
            "operator <",
            "Box::operator()(int)",
            "operator,",
            "operator<",
            "Box::operator<",
            "operator<<",
            "operator->",
            "Box::operator[]",
            "operator*",
            "Box::operator*<int>",
            "operator new[]",
            "operator\"\"_x",
            "operator\"\" _x",
        ];
        for name in names {
            let id = only(&debug, name);
            let function = debug.function(id).expect("is whole");
            assert!(!function.bodies.is_empty(), "{compiler} {name}");
        }
    }
}

/// Functions with a long name that is only once in the file, each with one in it.
const LONG_SCOPES: &str = r#"
        .globl main
main:   ret
        .section .debug_abbrev, ""
        .uleb128 1, 0x11
        .byte 1
        .uleb128 0x13, 0x0b, 0, 0
        .uleb128 2, 0x2e
        .byte 0
        .uleb128 0x3c, 0x19, 3, 8, 0, 0
        .uleb128 3, 0x2e
        .byte 1
        .uleb128 0x47, 0x13, 0, 0
        .uleb128 4, 0x2e
        .byte 0
        .uleb128 3, 8, 0, 0
        .byte 0
        .section .debug_info, ""
        .long 2f - 1f
1:      .value 4
        .long .debug_abbrev
        .byte 8
        .byte 1, 4
        .byte 2
        .fill 3000, 1, 'n'
        .byte 0
        .rept MANY
        .byte 3
        .long 13
        .byte 4, 'x', 0
        .byte 0
        .endr
        .byte 0
2:
"#;

/// What is around functions is charged as their names are: a small file could make gigabytes of it.
#[test]
fn scopes_of_small_files() {
    for (many, is_read) in [(100, true), (10_000, false)] {
        let directory = tempfile::tempdir().expect("a directory");
        let text = LONG_SCOPES.replace("MANY", &many.to_string());
        std::fs::write(directory.path().join("f.s"), text).expect("written");
        let linking = ["-nostdlib", "-static", "-Wl,-e,main", "f.s", "-o", "program"];
        let output = Command::new("gcc").current_dir(directory.path()).args(linking).output().expect("gcc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found = open(&directory.path().join("program"))
            .find_functions(&FunctionPattern { name: "nnn*::x".into(), file: None });
        assert_eq!(found.map(|found| found.len()).ok(), is_read.then_some(many), "{many}");
    }
}

/// Two units with a static variable, an enumerator and a type of one name, and one without.
fn of_one_name() -> tempfile::TempDir {
    let unit = |number: u32| {
        let color = format!("enum color {{ RED = {number} }}; volatile enum color kept_{number} = RED;");
        let code = format!("__attribute__((noipa)) int of_{number}() {{ return counter + kept_{number}; }}");
        let node = format!("struct node {{ int m{number}; }} node_{number};");
        format!("static volatile int counter = {number}; {color} {node} {code}")
    };
    let third = "int of_3(); int of_40(); volatile int total; int main() { return of_3() + of_40() + total; }";
    linked("gcc", &[], &[&unit(3), &unit(40), third])
}

/// Also in an exported index.
#[test]
fn statics_of_one_name() {
    let directory = of_one_name();
    let debug = open(&directory.path().join("program"));
    let index = directory.path().join("index");
    std::fs::write(&index, debug.export(None).expect("is exported")).expect("written");
    for debug in [&debug, &open(&index)] {
        let seen = |function: &str, name: &str| debug.global_for(only(debug, function), name).expect("an index");
        let at = |function: &str| seen(function, "counter").expect("is there").location;
        assert_ne!(at("of_3"), at("of_40"));
        assert_eq!(debug.global("counter", None).expect("an index").expect("is there").location, at("of_3"));
        assert!(seen("main", "counter").is_err());
        assert!(seen("of_3", "total").is_ok());
        let units = debug.units_of_static("counter").expect("an index");
        assert_eq!(units, ["0.cc", "1.cc"]);
        assert!(debug.units_of_static("total").expect("an index").is_empty());
    }
}

#[test]
fn types_of_one_name() {
    let debug = open(&of_one_name().path().join("program"));
    for name in ["struct node", "node", "union node"] {
        let first = |function: &str| {
            let found = debug.find_type_for(only(&debug, function), name).expect("is whole")?;
            let Type::Struct { members, .. } = debug.resolve(found).expect("is whole").1 else { return None };
            members.first().and_then(|member| member.name.clone())
        };
        let found = ["of_3", "of_40", "main"].map(first);
        let names = match name {
            "union node" => [None, None, None],
            _ => ["m3", "m40", "m3"].map(|name| Some(name.to_string())),
        };
        assert_eq!(found, names, "{name}");
    }
}

/// A name without a scope is looked for as the language does it, from the scopes around the function outwards.
#[test]
fn types_by_scope() {
    const NESTED: &str = "struct other { struct node { long q; int x; } v; }; struct node; typedef int plain; struct W { typedef other::node item; item *i; };\
        other o; W w; int of_none(node *n) { return n != 0; } int other_one(other *o) { return o->v.x; }";
    const OUTER: &str = "struct node { int x; long pad; }; struct item { char pad[16]; int x; };\
        namespace in { struct node { long pad[3]; int x; }; struct C { int m(node *n); }; int C::m(node *n) { return n->x; } int f(node *n) { return n->x; } }\
        node a; item b; in::C c; int of_node(node *n, item *i) { return n->x + i->x; } int main() { in::node n = {}; return c.m(&n) + in::f(&n); }";
    for compiler in ["g++", "clang++"] {
        let directory = linked(compiler, &["-O1"], &[NESTED, OUTER]);
        let debug = open(&directory.path().join("program"));
        let at = |function: &str, name: &str| {
            let found = debug.find_type_for(only(&debug, function), name).expect("is whole").expect(name);
            debug.member(found, "x").expect("x").offset
        };
        for node in ["node", "struct node"] {
            assert_eq!(at("of_none", node), 0, "{compiler}");
            assert_eq!(at("of_node", node), 0, "{compiler}");
            assert_eq!(at("in::f", node), 24, "{compiler}");
            assert_eq!(at("in::C::m", node), 24, "{compiler}");
        }
        assert_eq!(at("of_none", "item"), 16, "{compiler}");
        let anywhere = debug.find_type("item").expect("is whole").expect("item");
        assert_eq!(debug.member(anywhere, "x").expect("x").offset, 16, "{compiler}");
    }
}

#[test]
fn enumerators_of_one_name() {
    let debug = open(&of_one_name().path().join("program"));
    let red = |function: &str| debug.enumerator_for(only(&debug, function), "RED").expect("is whole");
    assert_eq!((red("of_3"), red("of_40"), red("main")), (Some(3), Some(40), Some(3)));
}

const SHORT: &str = "
    namespace lib {
    inline namespace v2 { int made(int a) { return a + 1; } struct Box { int b; int open() { return b; } }; }
    namespace { int inside = 5; int within(int a) { inside += a; return inside; } }
    namespace other { int far(int a) { return a; } }
    template <class T, int N> struct Arr { T items[N]; __attribute__((noinline)) T sum() { return items[0] + N; } };
    enum Color { RED = 3, GREEN };
    enum class Big : long { A = 7, RED = 8 };
    struct Base { static int counter; int own; };
    struct Derived : Base { enum Kind { SMALL = 9 }; Kind kind; };
    int Base::counter = 4;
    int uses(int a, Box *b, Arr<long, 3> *c, Derived *d, Big e, Color f)
    { return made(a) + within(a) + other::far(a) + b->open() + c->sum() + d->own + d->counter + (int)e + f; }
    }
    lib::Arr<long, 3> arr; lib::Derived derived; lib::Big big; lib::Color color;";

/// As people write names: without inline and unnamed namespaces, and without template arguments of the types around a function.
#[test]
fn names_with_parts_that_need_not_be_written() {
    let compiled = Compiled::new(SHORT, &["-x", "c++", "-gdwarf-5", "-fno-inline"]);
    let debug = compiled.open();
    let found = |name: &str| {
        let pattern = FunctionPattern { name: name.into(), file: None };
        debug.find_functions(&pattern).expect("an index").len()
    };
    assert_eq!((found("lib::made"), found("lib::v2::made"), found("::lib::Box::open")), (1, 1, 1));
    assert_eq!((found("lib::within"), found("lib::far"), found("lib::wi*")), (1, 0, 1));
    assert_eq!((found("Arr::sum"), found("lib::Arr::sum"), found("lib::Brr::sum")), (1, 1, 0));
    assert!(debug.global("lib::inside", None).expect("an index").is_ok());
    assert!(debug.global("_ZN3lib4Base7counterE", None).expect("an index").is_ok());
    let arr = type_named(&debug, "lib::Arr<long, 3>");
    assert_eq!((arr, debug.size_of(arr).expect("a size")), (type_named(&debug, "Arr<long int, 3>"), Some(24)));
    assert!(debug.find_type("lib::Arr<int, 3>").expect("an index").is_none());
    assert!(debug.find_type("lib::Box").expect("an index").is_some());
    let value = |name: &str| debug.enumerator(name).expect("an index");
    assert_eq!((value("Color::RED"), value("lib::Color::RED"), value("Big::RED")), (Some(3), Some(3), Some(8)));
    assert_eq!(
        (value("Big::A"), value("Derived::SMALL"), value("Color::A"), value("lib::GREEN")),
        (Some(7), Some(9), None, Some(4))
    );
    let member = |name: &str| debug.static_member(type_named(&debug, "Derived"), name).expect("an index");
    assert!(member("counter").is_ok() && member("own").is_err() && member("kind").is_err());
}

/// Each was looked for among all entries of its unit.
#[test]
fn many_types_that_a_unit_declares() {
    // g++ compares each member of a type with those before it.
    const TYPES: usize = 20_000;
    const IN_ONE: usize = 200;
    let declared: String = (0..TYPES).map(|at| format!("struct S{at};")).collect();
    let member = |at: usize| format!("n::S{at} *p{at};");
    let members = |first: usize| (first..first + IN_ONE).map(member).collect::<String>();
    let some: String = (0..TYPES)
        .step_by(IN_ONE)
        .map(|first| format!("struct Some{first} {{ {} }} some{first};", members(first)))
        .collect();
    let compiled = Compiled::new(&format!("namespace n {{ {declared} }} {some}"), &["-x", "c++"]);
    let debug = compiled.open();
    let began = std::time::Instant::now();
    for first in (0..TYPES).step_by(IN_ONE) {
        let id = type_named(&debug, &format!("Some{first}"));
        let Type::Struct { members, .. } = debug.resolve(id).expect("is whole").1 else { panic!() };
        assert_eq!(members.len(), IN_ONE);
        for member in &members {
            let Type::Pointer(Some(target)) = debug.resolve(member.type_id).expect("is whole").1 else { panic!() };
            let found = debug.resolve(target).expect("is whole").1;
            assert!(matches!(found, Type::Incomplete { .. }), "{found:?}");
        }
    }
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

#[test]
fn many_members_that_a_struct_has() {
    const MANY: usize = 20_000;
    let members: String = (0..MANY).map(|at| format!("struct S{at} *p{at};")).collect();
    let compiled = Compiled::new(&format!("struct All {{ {members} }} all;"), &[]);
    let debug = compiled.open();
    let began = std::time::Instant::now();
    let Type::Struct { members, .. } = debug.resolve(type_named(&debug, "All")).expect("is whole").1 else { panic!() };
    for member in &members {
        assert!(matches!(debug.resolve(member.type_id).expect("is whole").1, Type::Pointer(Some(_))));
    }
    assert_eq!(members.len(), MANY);
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

/// Any number of functions can have the same code, which is decoded only so often.
#[test]
fn functions_with_the_same_code() {
    const LONG: &str =
        "__attribute__((noinline)) int f(int x) {\n x++;\n __asm__ volatile (\".fill 1000000, 1, 0x90\"); return x; }";
    let directory = linked("gcc", &["-O0"], &[&format!("{LONG} int main() {{ return f(1); }}")]);
    let debug = open(&directory.path().join("program"));
    let id = only(&debug, "f");
    let entry = debug.function(id).expect("is whole").bodies.first().expect("one").entry;
    let known = (0..400).filter(|_| debug.prologue(id, entry).expect("is whole").is_some()).count();
    assert!((16..100).contains(&known), "{known}");
}

/// Of two types of one name that are in units of their own the one that the unit refers to, also by way of another type.
#[test]
fn types_of_a_unit_by_their_signatures() {
    let one = "struct Inner { char pad[32]; int a; }; struct Outer { Inner *inner; };
        int one(Outer *outer) { return outer->inner->a; }";
    let two = "struct Inner { int a; }; int two(Inner *inner) { return inner->a; }";
    let main = "struct Outer; struct Inner; int one(Outer *); int two(Inner *); int main() { return one(0) + two(0); }";
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let directory = linked("g++", &["-fdebug-types-section", version], &[one, two, main]);
        let debug = open(&directory.path().join("program"));
        let place = |function: &str| {
            let found =
                debug.find_type_for(only(&debug, function), "struct Inner").expect("is whole").expect("is there");
            debug.member(found, "a").expect("a").offset
        };
        assert_eq!((place("one"), place("two")), (32, 0), "{version}");
    }
}

const RHOMBUS: &str = "
    struct Root { long id; virtual ~Root() {} };
    struct Left : virtual Root { int left; };
    struct Bottom : Left { int bottom; int add(int); };
    int Bottom::add(int n) { return n; } int main() { return 0; }
    Bottom object; Bottom *bottom = &object; int Bottom::*field; int (Bottom::*method)(int); long get() { return bottom->id; }";

/// Where a virtual base is the object says; and the types of pointers to members.
#[test]
fn members_of_virtual_bases() {
    for compiler in ["g++", "clang++"] {
        for version in ["-gdwarf-5", "-gdwarf-4"] {
            let directory = tempfile::tempdir().expect("a directory");
            std::fs::write(directory.path().join("r.cc"), RHOMBUS).expect("written");
            let options = ["-O1", version, "-fdebug-types-section", "-o", "r", "r.cc"];
            let made = Command::new(compiler).current_dir(directory.path()).args(options).output();
            let made = made.expect("the compiler runs");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            let debug = open(&directory.path().join("r"));
            let of = |name: &str| debug.global(name, None).expect("an index").expect("is there").type_id;
            let Type::Pointer(Some(bottom)) = debug.get(of("bottom")).expect("a type") else { panic!("no pointer") };
            let id = debug.member(bottom, "id").expect("id");
            let bases: Vec<(u64, u64)> = id.bases.iter().map(|base| (base.offset, base.below)).collect();
            assert_eq!((bases, id.offset), (vec![(0, 24)], 8), "{compiler} {version}");
            assert_eq!(debug.member(bottom, "left").expect("left").bases, []);
            assert_eq!(debug.type_name(of("field")), "int Bottom::*");
            let name = debug.type_name(of("method"));
            assert!(name.starts_with("int (Bottom::*)(struct Bottom*"), "{name}");
            let part = debug.member(of("method"), "__pfn").expect("a pointer");
            assert!(matches!(debug.get(part.type_id).expect("a type"), Type::Pointer(Some(_))));
            assert_eq!(debug.member(of("method"), "__delta").expect("a number").offset, 8);
        }
    }
}

/// clang writes no name for a class whose type is in a unit of its own.
#[test]
fn scopes_of_types_in_units_of_their_own() {
    let text =
        "namespace ns { class Counter { public: static int made; int add(int); int own; }; int Counter::made = 4;
        int Counter::add(int n) { return own += n; } }
        int main() { ns::Counter counter; return counter.add(ns::Counter::made); }";
    for compiler in ["g++", "clang++"] {
        for version in ["-gdwarf-5", "-gdwarf-4"] {
            let directory = linked(compiler, &["-fdebug-types-section", version], &[text]);
            let debug = open(&directory.path().join("program"));
            let found = |name: &str| {
                let pattern = FunctionPattern { name: name.into(), file: None };
                debug.find_functions(&pattern).expect("an index").len()
            };
            assert_eq!((found("ns::Counter::add"), found("Counter::*")), (1, 1), "{compiler} {version}");
            assert!(debug.global("ns::Counter::made", None).expect("an index").is_ok(), "{compiler} {version}");
            let counter = type_named(&debug, "ns::Counter");
            assert!(debug.static_member(counter, "made").expect("an index").is_ok(), "{compiler} {version}");
        }
    }
}

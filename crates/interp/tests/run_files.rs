//! Temporary: everything parses.
#[test]
fn parses() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/ir/run");
    for f in std::fs::read_dir(dir).unwrap() {
        let p = f.unwrap().path();
        let s = std::fs::read_to_string(&p).unwrap();
        if let Err(e) = invar_ir::text::parse(p.to_str().unwrap(), &s) {
            println!("{}:\n{e}", p.display());
        }
    }
}

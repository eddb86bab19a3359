//! What must hold of any input; the fuzz targets and the replay of the corpus share it.

use invar_ir::{Module, binary, text, verify};

/// What must hold of any text. Gives whether it is a module.
pub fn check_text(source: &str) -> bool {
    // Directives and expectations are read from any text, too.
    let _ = (text::cases(source), text::expectations(source));
    let module = match text::parse("fuzz", source) {
        Ok(module) => module,
        Err(errors) => {
            assert!(!errors.0.is_empty(), "refused without a reason");
            // One more says how many are not shown.
            assert!(errors.0.len() <= text::MAX_ERRORS + 1);
            let _ = errors.to_string();
            return false;
        }
    };
    check_print(&module);
    let bytes = binary::encode(&module);
    assert_eq!(
        binary::decode(&bytes).as_ref(),
        Ok(&module),
        "the binary form gives another module"
    );
    let _ = verify(module);
    true
}

/// What must hold of any bytes. Gives whether they are a module.
pub fn check_binary(bytes: &[u8]) -> bool {
    let module = match binary::decode(bytes) {
        Ok(module) => module,
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{error}");
            return false;
        }
    };
    assert!(
        binary::encode(&module) == bytes,
        "two encodings of one module"
    );
    // A module that no text can express still prints, and parsing that ends.
    let printed = module.to_string();
    let _ = text::parse("printed", &printed);
    // One that obeys the rules can be expressed.
    if let Ok(verified) = verify(module) {
        check_print(&verified);
    }
    true
}

/// Printing and parsing are inverse.
fn check_print(module: &Module) {
    let printed = module.to_string();
    match text::parse("printed", &printed) {
        Ok(again) => {
            assert!(
                again.same_up_to_spans(module),
                "another module is printed:\n{printed}"
            );
            assert_eq!(again.to_string(), printed);
        }
        // Printing may spell out more than the source did.
        Err(errors) => assert!(
            printed.len() > text::MAX_TEXT_BYTES,
            "what is printed does not parse:\n{printed}\n{errors}"
        ),
    }
}

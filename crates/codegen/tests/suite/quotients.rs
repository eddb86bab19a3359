//! Quotients as products: of every code of every format that stands for fractions.

use invar_codegen::analysis::quotients::Reciprocal;

#[test]
fn every_code_of_normalized_formats_is_the_quotient() {
    for bits in [2, 8, 9, 10, 16] {
        let unsigned = (0, (1 << bits) - 1);
        let signed = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
        for (least, most) in [unsigned, signed] {
            let divisor = most as f32;
            let Some(by) = Reciprocal::of((least, most), divisor) else {
                // Its reciprocal is a float.
                assert!(divisor == 1.0, "{divisor}");
                continue;
            };
            for code in least..=most {
                let code = code as f32;
                let product = code.mul_add(by.high, code * by.low);
                assert_eq!(product.to_bits(), (code / divisor).to_bits(), "{code}");
            }
        }
    }
}

#[test]
fn what_is_not_exact_is_no_product() {
    let bytes = (0, 255);
    for divisor in [0.0, -0.0, f32::INFINITY, f32::NAN, 256.0, 1e-38, 1e38] {
        assert_eq!(Reciprocal::of(bytes, divisor), None, "{divisor}");
    }
    // Of 0 the sign would be lost.
    assert_eq!(Reciprocal::of(bytes, -255.0), None);
    assert!(Reciprocal::of((1, 255), -255.0).is_some());
    // More numbers than are tried.
    assert_eq!(Reciprocal::of((0, 65_536), 255.0), None);
    assert!(Reciprocal::of((0, 65_535), 255.0).is_some());
}

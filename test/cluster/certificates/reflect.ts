// To be imported before the certificate library, which looks for these functions as soon as it is loaded.
import { provideReflection } from "../../../src/admission/tls/reflection.ts";

provideReflection();

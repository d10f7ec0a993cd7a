// Prints the schema errors of the bill of materials on standard input; prints nothing if it is valid.
import { text } from "node:stream/consumers";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";

const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
const problems = await validator.validate(await text(process.stdin));
if (problems !== null) console.log(JSON.stringify(problems, undefined, 2));

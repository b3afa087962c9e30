export { Buffer } from "buffer";

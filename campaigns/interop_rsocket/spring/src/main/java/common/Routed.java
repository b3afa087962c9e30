package common;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.CompositeByteBuf;
import io.rsocket.Payload;
import io.rsocket.metadata.CompositeMetadata;
import io.rsocket.metadata.CompositeMetadataCodec;
import io.rsocket.metadata.RoutingMetadata;
import io.rsocket.metadata.TaggingMetadataCodec;
import io.rsocket.metadata.WellKnownMimeType;
import io.rsocket.util.DefaultPayload;
import java.util.List;

/** Payloads with a route, which is a name in penstock. */
public final class Routed {
  public static final String COMPOSITE = "message/x.rsocket.composite-metadata.v0";

  private Routed() {}

  public static byte[] bytes(ByteBuf buffer) {
    byte[] found = new byte[buffer.readableBytes()];
    buffer.readBytes(found);
    return found;
  }

  /** The route of a payload; "" without one. */
  public static String route(Payload payload) {
    if (!payload.hasMetadata()) return "";
    for (CompositeMetadata.Entry entry : new CompositeMetadata(payload.sliceMetadata(), false)) {
      if (WellKnownMimeType.MESSAGE_RSOCKET_ROUTING.getString().equals(entry.getMimeType())) {
        return new RoutingMetadata(entry.getContent()).iterator().next();
      }
    }
    return "";
  }

  public static Payload named(String name, byte[] data) {
    CompositeByteBuf metadata = ByteBufAllocator.DEFAULT.compositeBuffer();
    CompositeMetadataCodec.encodeAndAddMetadata(
        metadata,
        ByteBufAllocator.DEFAULT,
        WellKnownMimeType.MESSAGE_RSOCKET_ROUTING,
        TaggingMetadataCodec.createRoutingMetadata(ByteBufAllocator.DEFAULT, List.of(name))
            .getContent());
    byte[] encoded = bytes(metadata);
    metadata.release();
    return DefaultPayload.create(data, encoded);
  }
}

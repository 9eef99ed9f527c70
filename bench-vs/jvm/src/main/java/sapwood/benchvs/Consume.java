package sapwood.benchvs;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** One way to look at every byte: little-endian words, then the tail one byte at a time. */
final class Consume {
    static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private Consume() {}

    static long sum(byte[] bytes) {
        long sum = 0;
        int at = 0;
        for (; at + 8 <= bytes.length; at += 8) {
            sum += (long) WORD.get(bytes, at);
        }
        for (; at < bytes.length; at++) {
            sum += bytes[at] & 0xFF;
        }
        return sum;
    }
}

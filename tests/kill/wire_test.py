"""What goes over a network, counted by a proxy: gradients of 16 bits are half the bytes."""
from links import SMALL, ProxiedCluster
from program import main
from program.lives import Life, plan_of
from proxy import DOWN, UP

LAST_STEP = 60
NEAR = 0.05  # of the bytes, for headers and initial values


class Wire(Life):
    def carried(self, wire, parts):
        plan = plan_of("sync", LAST_STEP, {**SMALL, "train.wire": wire},
                       flags=["--transport=tcp", f"--parts={parts}"])
        cluster = ProxiedCluster(self.folder, plan, 1, 0)
        self.addCleanup(cluster.kill)
        cluster.start_planned()
        self.assert_done(cluster)
        self.assertEqual(cluster.proxy.trouble, [], cluster.story())
        return cluster.proxy.carried

    def test_rounded_gradients_are_half_the_bytes(self):
        for parts in ("never", "always"):
            with self.subTest(parts=parts):
                whole = self.carried("float32", parts)
                for wire in ("bf16", "fp16"):
                    half = self.carried(wire, parts)
                    self.assertAlmostEqual(half[UP] / whole[UP], 0.5, delta=NEAR)
                    self.assertAlmostEqual(half[DOWN] / whole[DOWN], 1, delta=NEAR)


if __name__ == "__main__":
    main()

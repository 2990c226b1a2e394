-- CreateTable
CREATE TABLE "images" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "request_id" UUID,
    "noted_session_id" UUID,
    "filename" TEXT NOT NULL,
    "content_type" TEXT NOT NULL,
    "size_bytes" INTEGER NOT NULL DEFAULT 0,
    "width" INTEGER NOT NULL DEFAULT 0,
    "height" INTEGER NOT NULL DEFAULT 0,
    "thumbnail" BYTEA,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "completed_at" TIMESTAMPTZ(3),

    CONSTRAINT "images_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "image_chunks" (
    "image_id" UUID NOT NULL,
    "start" INTEGER NOT NULL,
    "bytes" BYTEA NOT NULL,

    CONSTRAINT "image_chunks_pkey" PRIMARY KEY ("image_id","start")
);

-- CreateIndex
CREATE UNIQUE INDEX "images_request_id_key" ON "images"("request_id");

-- CreateIndex
CREATE INDEX "images_organization_id_id_idx" ON "images"("organization_id", "id" DESC);

-- AddForeignKey
ALTER TABLE "images" ADD CONSTRAINT "images_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "image_chunks" ADD CONSTRAINT "image_chunks_image_id_fkey" FOREIGN KEY ("image_id") REFERENCES "images"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Images are already compressed.
ALTER TABLE "images" ALTER COLUMN "thumbnail" SET STORAGE EXTERNAL;
ALTER TABLE "image_chunks" ALTER COLUMN "bytes" SET STORAGE EXTERNAL;

-- For the search for interrupted uploads.
CREATE INDEX "images_unfinished_idx" ON "images"("organization_id", "created_at") WHERE "completed_at" IS NULL;
